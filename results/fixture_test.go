package results

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// fake describes a strategy of the fixture.
type fake struct {
	label, form  string
	p50          float64 // ns
	tail         float64 // sigma of the log-normal latency
	ratio        float64 // throughput by that of the reference
	leak         int64   // units per round; 0 for none
	worst        int64
	falseRejects int64
	drift        int64
	tier         string
	commands     float64
	sql          float64
	verdict      string
	formula      string
}

var fakes = []fake{
	{"incr-expire", "documented", 310e3, 0.35, 0.93, 0, 0, 0, 980, "redis", 1.05, 0, Kept, "L"},
	{"incr-expire-atomic", "hardened", 390e3, 0.33, 0.80, 0, 0, 0, 0, "redis", 1, 0, Kept, "L"},
	{"decr-literal", "documented", 305e3, 0.36, 0.92, 0, 0, 19_981, -19, "redis", 1.02, 0, Kept, "L"},
	{"check-then-set", "documented", 640e3, 0.42, 0.48, 8_423, 23, 0, -24, "redis", 1.62, 0, "", ""},
	{"lua-reserve", "documented", 385e3, 0.34, 0.79, 0, 0, 0, 0, "redis", 1, 0, Kept, "L"},
	{"redis-hash", "documented", 720e3, 0.5, 0.41, 3_110, 12, 0, 2, "redis", 2.9, 0.02, "", ""},
	{"three-tier", "documented", 480e3, 0.9, 0.66, 2_950, 14, 41, 3, "redis", 2.2, 0.02, "", ""},
	{"pg-check", "documented", 2.4e6, 0.7, 0.11, 15_800, 31, 0, 0, "postgres", 0, 1.5, Violated, "L + (in flight - 1) x largest cost"},
	{"unlimited", "baseline", 2.1e3, 0.8, 28, 20_000, 20, 0, 0, "", 0, 0, "", ""},
	{"exact", "baseline", 3.3e3, 0.9, 21, 0, 0, 0, 0, "process", 0, 0, Kept, "L"},
}

// fixture is a file as a run of the core strategies would leave it.
func fixture(rounds int, strategies ...fake) File {
	rng := rand.New(rand.NewPCG(7, 11))
	f := File{
		Schema: SchemaVersion, Kind: Measured, Seed: 42,
		Stores: Stores{
			Redis:    Store{Kind: "process", Version: "7.0.15", Durability: "no snapshots, no AOF", Detail: "/usr/bin/redis-server, found on this machine"},
			Postgres: Store{Kind: "process", Version: "15.18", Durability: "fsync on, synchronous_commit on", Detail: "/usr/lib/postgresql/15/bin"},
		},
		Provenance: Provenance{
			Host: Host{Name: "bench-1", OS: "linux", Arch: "amd64", CPUs: 2, Model: "Intel Xeon Platinum 8370C"},
			Time: time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC), Commit: "3f1c9a7",
			Versions: map[string]string{"quotabench": "0.1.0", "go": "go1.26.0", "redis": "7.0.15"},
			Command:  "quotabench run --workload hot-key",
		},
		Workload: Workload{Name: "hot-key", Notes: []string{"a fresh subject per crossing, twice the limit asked of each by all workers at once"}},
		Skipped: []Skipped{
			{"memory-deque", "policy user-links has a calendar-month window; memory-deque serves rolling"},
			{"etcd-counter", "needs etcd, which was not built in"},
		},
	}
	for round := 1; round <= rounds; round++ {
		reference := 61_000 * math.Exp(0.03*rng.NormFloat64())
		for _, k := range strategies {
			f.Runs = append(f.Runs, fakeRun(rng, k, round, reference))
		}
	}
	return f
}

func fakeRun(rng *rand.Rand, k fake, round int, reference float64) Run {
	const crossings, limit, samples = 1_000, 20, 4_000
	h := NewHistogram()
	shift := math.Exp(0.04 * rng.NormFloat64())
	for range samples {
		ns := k.p50 * shift * math.Exp(k.tail*rng.NormFloat64())
		if rng.IntN(300) == 0 {
			ns += 4e6 * rng.Float64()
		}
		h.Record(int64(ns))
	}
	l, err := h.Latency()
	if err != nil {
		panic(err)
	}
	l.StallsP99, l.StallsP999 = 38, 4
	units := min(int64(float64(k.leak)*math.Exp(0.05*rng.NormFloat64())), limit*crossings)
	r := Run{
		Strategy: k.label, Form: k.form, Options: map[string]string{}, Policy: "user-links", Workload: "hot-key",
		Params: Params{
			Label: k.label, Limit: limit, Unit: "links", Window: "calendar-month", Loop: ClosedLoop, Workers: 50, Instances: 2,
			Subjects: crossings, Pool: 50, Requests: 2 * limit * crossings, Stream: "9f3a11c2",
		},
		Repetition: round, Issued: 2 * limit * crossings, ElapsedNS: 700e6,
		ThroughputPerS: reference * k.ratio * math.Exp(0.02*rng.NormFloat64()), ReferencePerS: reference,
		Latency: l,
		Leak: Leak{
			Units: units, Possible: units, Pct: pct(units, limit*crossings), PctOfOver: pct(units, limit*crossings), OverUnits: limit * crossings,
			Requests: units, WorstUnits: k.worst, Crossings: crossings, MedianUnits: float64(units / crossings),
		},
		FalseRejects: FalseRejects{Count: k.falseRejects, Possible: k.falseRejects, Units: k.falseRejects},
		Cost: Cost{Commands: k.commands, RoundTrips: k.commands + k.sql, Bytes: 170 * (k.commands + k.sql), SQL: k.sql, Allocs: 14,
			ClientCPU: 9e3 + 4e3*k.commands, RedisCPU: 3.1e3 * k.commands, PostgresCPU: 20e3 * k.sql, RunQueue: 21e3},
		Audit: Audit{Valid: true, TimingsValid: true},
	}
	if round == 1 {
		later := ProbeCost{Commands: 1, RoundTrips: 1 + k.sql, Bytes: 170, SQL: k.sql, Allocs: 6}
		r.Cost.Probe = &Probe{First: ProbeCost{Commands: 2, RoundTrips: 2 + 2*k.sql, Bytes: 320, SQL: 2 * k.sql, Allocs: 11}, Admitted: &later}
		if k.form != formBaseline {
			r.Cost.Probe.Rejected = &ProbeCost{Commands: 1.0625, RoundTrips: 1, Bytes: 101}
		}
	}
	r.Admitted = max(0, limit*crossings+units-k.falseRejects)
	r.Rejected = r.Issued - r.Admitted
	if units > 0 {
		r.Leak.Violations = min(crossings, units/2+1)
		r.Leak.Subjects = r.Leak.Violations
	}
	if k.tier != "" {
		r.Drift = &Drift{Units: k.drift, PctOfLimit: pct(k.drift, limit), Tiers: []TierDrift{
			{Tier: k.tier, At: "rest", Units: k.drift, Total: magnitudeInt(k.drift) * 40, PctOfLimit: pct(k.drift, limit), Readings: crossings, Drifting: 40},
		}}
		if k.tier == "redis" && k.drift == 3 {
			r.Drift.Tiers = append(r.Drift.Tiers, TierDrift{Tier: "postgres", At: "after-jobs", Units: -1, Total: 12, Readings: crossings, Drifting: 12, SettledNS: 80e6})
		}
	}
	if k.verdict != "" {
		r.Guarantee = []Clause{{Property: "leak", Formula: k.formula, Certain: k.worst, Possible: k.worst, Verdict: k.verdict}}
	}
	if round == 3 && k.label == "pg-check" {
		r.Audit.Strike("cpu-steal", StrikesTimings, "2.3 % of CPU time was stolen by other machines on this host (limit 1 %)")
	}
	return r
}

func magnitudeInt(n int64) int64 { return int64(magnitude(n)) }

// manyFakes returns n strategies, most of which leak nothing at nearly the same
// p99, which is the hardest case for labels.
func manyFakes(n int) []fake {
	out := make([]fake, n)
	for i := range out {
		k := fake{label: fmt.Sprintf("strategy-%02d:write=literal,reset=job", i), form: "reference", p50: 400e3 * (1 + 0.002*float64(i)), tail: 0.35, ratio: 0.8,
			tier: "redis", commands: 1, verdict: Kept, formula: "L"}
		if i%2 == 0 {
			k.label = fmt.Sprintf("short-%d", i)
		}
		if i%4 == 3 {
			k.leak, k.worst, k.verdict = int64(100+i*37), 9, Violated
		}
		out[i] = k
	}
	return out
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
