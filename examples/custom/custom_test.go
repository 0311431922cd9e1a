package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/prove"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/strategytest"
	"github.com/quotabench/quotabench/workloads"
)

// TestProve: all of what follows in one call, as it stands in a module of one's own.
func TestProve(t *testing.T) {
	prove.Limiter(t, lookup(t, "team-log"), prove.Options{Days: 3})
}

// TestConformance: the limiter keeps what it declares, one caller after the other
// and many at once.
func TestConformance(t *testing.T) { strategytest.Run(t, lookup(t, "team-log")) }

// TestNoScheduleLeaks: no order of the commands of three callers leaks.
func TestNoScheduleLeaks(t *testing.T) {
	res := explored(t, lookup(t, "team-log"), 3)
	if len(res.Findings) > 0 || res.Capped != "" {
		t.Errorf("found %+v, capped %q", res.Findings, res.Capped)
	}
}

// TestSimulation: fifty callers over virtual time leak nothing.
func TestSimulation(t *testing.T) {
	if r := simulated(t, lookup(t, "team-log")); r.Leak.Units != 0 || r.FalseRejects.Count != 0 || r.Rejected == 0 {
		t.Errorf("leaked %d, rejected %d wrongly of %d", r.Leak.Units, r.FalseRejects.Count, r.Rejected)
	}
}

// TestPlantedBugsAreFound by the conformance suite, by exploring and by
// simulating. A race needs luck if callers run freely; exploring needs none.
func TestPlantedBugsAreFound(t *testing.T) {
	for _, name := range []string{"off-by-one", "count-then-add"} {
		meta := lookup(t, name)
		t.Run(name+"/conformance", func(t *testing.T) {
			failures := strategytest.Failures(t, meta)
			if !slices.ContainsFunc(failures, func(f string) bool {
				return strings.Contains(f, "leak")
			}) && name == "off-by-one" {
				t.Errorf("not found: %q", failures)
			}
		})
		t.Run(name+"/explore", func(t *testing.T) {
			leak := explored(t, meta, 2).Found(explore.Leak)
			if leak == nil {
				t.Fatal("not found")
			}
			for _, s := range leak.Steps {
				t.Log(s.Actor, s.Command)
			}
		})
		t.Run(name+"/sim", func(t *testing.T) {
			if r := simulated(t, meta); r.Leak.Units == 0 {
				t.Error("not found")
			}
		})
	}
}

func lookup(t *testing.T, name string) *strategies.Meta {
	t.Helper()
	meta, err := strategies.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return meta
}

// explored searches every order of commands of so many callers.
func explored(t *testing.T, meta *strategies.Meta, clients int) *explore.Result {
	t.Helper()
	res, err := explore.Run(context.Background(), strategies.Selection{Meta: meta}, explore.Config{Clients: clients})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func simulated(t *testing.T, meta *strategies.Meta) *results.Run {
	t.Helper()
	report, err := simulate(t, meta)
	if err != nil {
		t.Fatal(err)
	}
	return &report.Runs[0]
}

// simulate runs 2,000 requests by eight callers in virtual time. An invalid run is
// an error.
func simulate(t *testing.T, meta *strategies.Meta) (*sim.Report, error) {
	t.Helper()
	var cfg sim.Config
	var err error
	cfg.Policy, err = quota.ParsePolicy("10 searches per rolling 1m")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Workload, err = workloads.Lookup("hot-key")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Strategies = []strategies.Selection{{Meta: meta}}
	cfg.Requests = 2_000
	cfg.Workers = 8
	cfg.Seed = 1
	return sim.Run(context.Background(), cfg)
}
