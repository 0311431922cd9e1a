package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/machine"
	"github.com/quotabench/quotabench/results"
)

// simFile is the record of a simulation. What differs from machine to machine is
// not in it.
func simFile(cfg sim.Config, report *sim.Report, skipped map[string]string) results.File {
	f := results.File{
		Schema: results.SchemaVersion, Kind: results.Simulated, Seed: cfg.Seed,
		Stores: results.Stores{
			Redis:    results.Store{Kind: "embedded", Detail: "table in memory"},
			Postgres: results.Store{Kind: "model", Detail: "table in memory"},
		},
		Workload: workloadRecord(measure.Config{Workload: cfg.Workload, Stream: cfg.Stream, Policy: cfg.Policy}, report.Info),
		Skipped:  []results.Skipped{}, Runs: report.Runs, Interrupted: report.Interrupted,
	}
	t := cfg.Topology
	f.Workload.Notes = []string{}
	f.Workload.Notes = append(f.Workload.Notes, report.Info.Notes...)
	where := "a Redis in each"
	if t.SharedRedis {
		where = "one Redis, in the first"
	}
	f.Workload.Notes = append(f.Workload.Notes,
		fmt.Sprintf("virtual time from %s; regions %s with %d of the application's instances each, %s; PostgreSQL in the first",
			cfg.Start.UTC().Format(time.RFC3339), strings.Join(t.Regions, ", "), t.Instances, where))
	if len(t.Skew) > 0 {
		f.Workload.Notes = append(f.Workload.Notes, fmt.Sprintf("instances' clocks are ahead by %v", t.Skew))
	}
	for _, r := range cfg.Rushes {
		f.Workload.Notes = append(f.Workload.Notes, fmt.Sprintf("a rush of %g more requests per second from %s for %v",
			r.Rate, r.From.UTC().Format(time.RFC3339), r.For))
	}
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		f.Skipped = append(f.Skipped, results.Skipped{Strategy: name, Reason: skipped[name]})
	}
	return f
}

// writeSeries writes how the runs developed.
func writeSeries(dir string, series []sim.Series) error {
	write := func(name string, b []byte, err error) error {
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), b, 0o644)
	}
	b, err := sim.JSON(series)
	if err := write("series.json", b, err); err != nil {
		return err
	}
	b, err = sim.CSV(series)
	if err := write("series.csv", b, err); err != nil {
		return err
	}
	for i := range series {
		svg, png, err := series[i].Plot()
		name := "series-" + strings.NewReplacer(":", "_", ",", "_", "=", "-", "/", "-").Replace(series[i].Strategy)
		if err := write(name+".svg", svg, err); err != nil {
			return err
		}
		if err := write(name+".png", png, err); err != nil {
			return err
		}
	}
	return nil
}

// writeProvenance writes where and when a simulation ran, which its record leaves
// out: two simulations of one seed have the same bytes.
func writeProvenance(ctx context.Context, dir string) error {
	host, _ := os.Hostname() // an unnamed host is recorded as such
	version, commit := buildVersion()
	b, err := json.MarshalIndent(results.Provenance{
		Host: results.Host{Name: host, OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Model: machine.CPUModel()},
		Time: clock.Wall{}.Now().UTC(), Commit: commit, Command: commandLine(ctx),
		Versions: map[string]string{"quotabench": version, "go": runtime.Version()},
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "provenance.json"), append(b, '\n'), 0o644)
}
