package postgres

import (
	"testing"

	"github.com/quotabench/quotabench/internal/kit/programs"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/stores"
)

// TestLostRaceForThePort starts servers on ports that a program has that does not answer.
func TestLostRaceForThePort(t *testing.T) {
	testenv.Long(t)
	bin, err := find()
	programs.Need(t, "postgres", err)
	storecheck.LostRace(t, func(port int, o stores.Options) error {
		_, err := start(t.Context(), bin, port, o)
		return err
	})
}

func TestNewestPostgresWins(t *testing.T) {
	for path, want := range map[string]float64{
		"/usr/lib/postgresql/15/bin":                              15,
		"/usr/lib/postgresql/9.6/bin":                             9.6,
		"/opt/homebrew/opt/postgresql@17/bin":                     17,
		"/usr/pgsql-16/bin":                                       16,
		"/usr/local/pgsql/bin":                                    0,
		"/Applications/Postgres.app/Contents/Versions/latest/bin": 0,
	} {
		if got := versionIn(path); got != want {
			t.Errorf("versionIn(%s) = %v, want %v", path, got, want)
		}
	}
}
