package stores_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/stores"
	"github.com/quotabench/quotabench/internal/stores/storetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(victimEnv) != "" {
		victim()
	}
	storetest.Main(m)
}

// victimEnv makes the test binary open servers in the folder it names, and wait
// to be killed.
const victimEnv = "QUOTABENCH_STORES_VICTIM"

type victimReport struct {
	Redis, Postgres int
	Addr            string
}

func victim() {
	ctx := context.Background()
	o := stores.Options{Dir: os.Getenv(victimEnv)}
	var rep victimReport
	r, err := stores.OpenRedis(ctx, "process", o)
	if err == nil {
		rep.Redis, rep.Addr = r.PID(), r.Info().Addr
	}
	p, err := stores.OpenPostgres(ctx, "process", o)
	if err == nil {
		rep.Postgres = p.PID()
	}
	if err := json.NewEncoder(os.Stdout).Encode(rep); err != nil {
		os.Exit(1)
	}
	select {}
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
