package cli

import (
	"context"
	"maps"
	"os"
	"runtime"
	"slices"

	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/machine"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
)

// simFile is the record of a simulation. What differs from machine to machine is
// not in it.
func simFile(cfg sim.Config, report *sim.Report, skipped map[string]string, real map[string]stores.Info) results.File {
	f := results.File{
		Schema: results.SchemaVersion, Kind: results.Simulated, Seed: cfg.Seed,
		Stores: map[string]results.Store{
			"redis":    {Kind: "embedded", Detail: "table in memory"},
			"postgres": {Kind: "model", Detail: "table in memory"},
		},
		Workload: workloadRecord(cfg.Workload.Name, report.Info, cfg.Notes()),
		Skipped:  []results.Skipped{}, Runs: report.Runs, Interrupted: report.Interrupted,
	}
	for name, i := range real {
		f.Stores[name] = storeRecord(i)
	}
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		f.Skipped = append(f.Skipped, results.Skipped{Strategy: name, Reason: skipped[name]})
	}
	return f
}

// provenance is where and when a simulation ran, which its record leaves out: two
// simulations of one seed have the same bytes.
func provenance(ctx context.Context) *results.Provenance {
	host, _ := os.Hostname() // an unnamed host is recorded as such
	version, commit := buildVersion()
	return &results.Provenance{
		Host: results.Host{Name: host, OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Model: machine.CPUModel()},
		Time: clock.Wall{}.Now().UTC(), Commit: commit, Command: commandLine(ctx),
		Versions: map[string]string{"quotabench": version, "go": runtime.Version()},
	}
}
