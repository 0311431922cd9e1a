package redis

import (
	"strconv"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/stores"
)

// TestLostRaceForThePort starts servers on ports that another program has: once one
// that does not answer, once another Redis.
func TestLostRaceForThePort(t *testing.T) {
	bin := testenv.Program(t, "redis")
	other, err := startEmbedded()
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	taken, err := strconv.Atoi(other.server.Port())
	if err != nil {
		t.Fatal(err)
	}
	storecheck.LostRace(t, func(port int, o stores.Options) error {
		_, err := start(t.Context(), bin, port, o, "")
		return err
	}, taken)
}
