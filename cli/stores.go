package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/workloads"
)

// openedStores are the stores of one invocation.
type openedStores struct {
	redis    *stores.Redis
	postgres *stores.Postgres
}

func (s *settings) openStores(ctx context.Context) (*openedStores, error) {
	st := &openedStores{}
	var err error
	if st.redis, err = stores.OpenRedis(ctx, s.redis, stores.Options{Image: s.redisImage}); err != nil {
		return nil, err
	}
	if st.postgres, err = stores.OpenPostgres(ctx, s.postgres, stores.Options{Image: s.postgresImage}); err != nil {
		return nil, errors.Join(err, st.close())
	}
	return st, nil
}

func (s *openedStores) close() error {
	var errs []error
	if s.postgres != nil {
		errs = append(errs, s.postgres.Close())
	}
	if s.redis != nil {
		errs = append(errs, s.redis.Close())
	}
	return errors.Join(errs...)
}

// announce says what the run will use, before it takes its time.
func (s *openedStores) announce(w io.Writer) {
	fmt.Fprintf(w, "Redis:      %s\nPostgreSQL: %s\n", storeLine(s.redis.Info()), storeLine(s.postgres.Info()))
}

func storeLine(i stores.Info) string {
	parts := []string{string(i.Kind)}
	if i.Version != "" {
		parts[0] += " " + i.Version
	}
	for _, p := range []string{i.Durability, i.Detail} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, "; ")
}

// file is the record of a measurement before its first run.
func (s *openedStores) file(ctx context.Context, cfg measure.Config, skipped map[string]string) results.File {
	f := results.File{
		Schema: results.SchemaVersion, Kind: results.Measured, Seed: cfg.Seed,
		Stores:     results.Stores{Redis: storeRecord(s.redis.Info()), Postgres: storeRecord(s.postgres.Info())},
		Provenance: *provenance(ctx),
		Workload:   results.Workload{Name: cfg.Workload.Name},
		Skipped:    []results.Skipped{}, Runs: []results.Run{},
	}
	for name, i := range map[string]stores.Info{"redis": s.redis.Info(), "postgres": s.postgres.Info()} {
		if i.Version != "" {
			f.Provenance.Versions[name] = i.Version
		}
	}
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		f.Skipped = append(f.Skipped, results.Skipped{Strategy: name, Reason: skipped[name]})
	}
	return f
}

func storeRecord(i stores.Info) results.Store {
	return results.Store{Kind: string(i.Kind), Detail: i.Detail, Version: i.Version, Durability: i.Durability}
}

// workloadRecord is the part of the record that describes the request stream.
func workloadRecord(cfg measure.Config, info workloads.Info) results.Workload {
	w := results.Workload{Name: cfg.Workload.Name, Notes: slices.Clone(info.Notes)}
	w.Notes = append(w.Notes, cfg.Notes()...)
	if t := info.Trace; t != nil {
		w.Trace = &results.Trace{File: t.File, Format: t.Format, Rows: t.Rows, Used: t.Used, Dropped: t.Dropped, Damaged: []results.DamagedRow{}}
		for _, d := range t.Damaged {
			w.Trace.Damaged = append(w.Trace.Damaged, results.DamagedRow(d))
		}
	}
	return w
}

// cpuModel is the processor's name where the system tells it.
func cpuModel() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
