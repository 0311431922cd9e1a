package session

import (
	"context"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/host/machine"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/version"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/workloads"
)

// Measured is the record of a measurement before its first run.
func (x *Session) Measured(workload string, skipped map[string]string) results.File {
	file := results.File{
		Schema: results.SchemaVersion, Kind: results.Measured, Seed: x.Seed,
		Stores:     map[string]results.Store{},
		Provenance: *Provenance(x.Ctx),
		Workload:   results.Workload{Name: workload},
		Skipped:    skippedRecords(skipped), Runs: []results.Run{},
	}
	for name, i := range x.Infos() {
		if i.Kind == stores.KindNone {
			continue // what was skipped for that says so
		}
		file.Stores[name] = storeRecord(name, i)
		if i.Version != "" {
			file.Provenance.Versions[name] = i.Version
		}
	}
	return file
}

func storeRecord(name string, i stores.Info) results.Store {
	driver, _, _ := strings.Cut(name, ".")
	return results.Store{
		Class: string(stores.ClassOf(driver)), Kind: string(i.Kind), Detail: i.Detail, Version: i.Version,
		Durability: i.Durability,
	}
}

// WorkloadRecord is the part of the record that describes the request stream.
func WorkloadRecord(name string, info workloads.Info, notes []string) results.Workload {
	workload := results.Workload{Name: name, Notes: append(slices.Clone(info.Notes), notes...)}
	if traceInfo := info.Trace; traceInfo != nil {
		workload.Trace = &results.Trace{File: traceInfo.File, Format: traceInfo.Format, Rows: traceInfo.Rows,
			Used: traceInfo.Used, Dropped: traceInfo.Dropped, Damaged: []results.DamagedRow{}}
		for _, damagedRow := range traceInfo.Damaged {
			workload.Trace.Damaged = append(workload.Trace.Damaged, results.DamagedRow(damagedRow))
		}
	}
	return workload
}

// Simulated is the record of a simulation before its first run. What differs from machine to machine is
// not in it, except for real stores.
func Simulated(seed uint64, skipped map[string]string, real map[string]stores.Info) results.File {
	file := results.File{
		Schema: results.SchemaVersion, Kind: results.Simulated, Seed: seed,
		Stores: map[string]results.Store{
			"redis":    {Kind: "embedded", Detail: "table in memory"},
			"postgres": {Kind: "model", Detail: "table in memory"},
		},
		Skipped: skippedRecords(skipped),
	}
	for name, i := range real {
		file.Stores[name] = storeRecord(name, i)
	}
	return file
}

// Provenance is where and when a simulation ran, which its record leaves out: two
// simulations of one seed have the same bytes.
func Provenance(ctx context.Context) *results.Provenance {
	host, _ := os.Hostname() // an unnamed host is recorded as such
	number, commit := version.Build()
	return &results.Provenance{
		Host: results.Host{Name: host, OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
			Model: machine.CPUModel()},
		Time: clock.Wall{}.Now().UTC(), Commit: commit, Command: commandLine(ctx),
		Versions: map[string]string{"quotabench": number, "go": runtime.Version()},
	}
}

func skippedRecords(skipped map[string]string) []results.Skipped {
	out := []results.Skipped{}
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		out = append(out, results.Skipped{Strategy: name, Reason: skipped[name]})
	}
	return out
}

type argsKey struct{}

// WithArgs keeps the arguments for [commandLine].
func WithArgs(ctx context.Context, args []string) context.Context {
	return context.WithValue(ctx, argsKey{}, args)
}

// commandLine is how the program was called, without passwords.
func commandLine(ctx context.Context) string {
	args, ok := ctx.Value(argsKey{}).([]string)
	if !ok { // a program of its own that executes Command
		args = os.Args[1:]
	}
	return format.Command(args)
}
