package stores_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/stores/storetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(victimEnv) != "" {
		victim()
	}
	storetest.Main(m)
}

// eventually waits up to 10 s for cond.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for range 1000 {
		if cond() {
			return
		}
		if err := (clock.Wall{}).Sleep(context.Background(), 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("after 10 s still not true: %s", what)
}
