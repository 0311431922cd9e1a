package figures

import (
	"cmp"
	"errors"
	"slices"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// Requests are what callers asked for, and what they were told.
var Requests = []Figure{
	{Key: "requests", Name: "requests", From: "issued", Unit: Count, CSV: "issued", Doc: "requests of all rounds that are valid"},
	{Key: "admitted", Name: "admitted", From: "admitted", Unit: Count, CSV: "admitted", Doc: "requests that were admitted", text: admitted},
	{Key: "admitted-pct", Name: "admitted", Unit: Percent, Doc: "share of the requests that was admitted",
		of: func(s *results.Summary) (float64, error) { return s.AdmittedPct(), nil }},
	{Key: "rejected", Name: "rejected", From: "rejected", Unit: Count, CSV: "rejected", Doc: "requests that were rejected"},
	{Key: "errors", Name: "errors", From: "errors", Noun: "requests", Unit: Count, Better: Lower, Counts: Valid, CSV: "errors",
		Doc: "requests without a decision"},
	{Key: "errors-pct", Name: "errors", Unit: Percent, Better: Lower, Counts: Valid, Doc: "requests without a decision, of all",
		of: func(s *results.Summary) (float64, error) { return results.Percent(s.Errors, s.Issued), nil }},
	{Key: "degraded", Name: "decided without the store", From: "degraded", Unit: Count, Better: Lower, CSV: "degraded",
		Doc: "decisions that were made without their store", text: degraded},
}

// Speed has timings.
var Speed = []Figure{
	{Key: "elapsed", Name: "elapsed", Unit: Nanoseconds, CSV: "elapsed_ns", Doc: "length of a round",
		run: func(r *results.Run) (float64, bool) { return float64(r.ElapsedNS), true }},
	{Key: "time", Name: "time per decision", Unit: Nanoseconds, Better: Lower, Bench: "ns/op",
		Doc: "length of a round by its requests, in closed loop", run: timePerDecision},
	{Key: "throughput", Name: "decisions\nper s", From: "throughput_per_s", Unit: PerSecond, Better: Higher, Counts: Timed,
		CSV: "throughput_per_s",
		Doc: "of callers that never pause, and by those of a bare client's INCR loop", text: throughput},
	{Key: "reference", Name: "bare client", Unit: PerSecond, CSV: "reference_per_s",
		Doc: "INCR commands per second of a bare client with as many callers, in the same round",
		run: func(r *results.Run) (float64, bool) { return r.ReferencePerS, r.ReferencePerS > 0 }},
	{Key: "ratio", Name: "ratio to\nINCR loop", From: "ratio_to_reference", Unit: Ratio, Better: Higher, Counts: Timed,
		CSV:   "decisions_per_incr",
		Bench: "decisions/INCR", Doc: "decisions per second by the bare client's commands per second", run: ratio, text: ratioText},
}

// Latency has the percentiles of each kind of time.
var Latency = latencies()

// Delay is how late requests of an open loop start. All are of the common rate, and better if lower.
var Delay = each(func(f *Figure) { f.AtRate, f.Better = true, Lower }, []Figure{
	{Key: "pacer-p50", Name: "p50", Over: pacer, From: "lateness_ns.pacer_p50", Unit: Nanoseconds, Missing: closed,
		Doc: "how late the pacer released half of the requests, or later"},
	{Key: "pacer-p99", Name: "p99", Over: pacer, From: "lateness_ns.pacer_p99", Unit: Nanoseconds, Missing: closed,
		Doc: "how late the pacer released one request of 100, or later"},
	{Key: "worker-p50", Name: "p50", Over: worker, From: "lateness_ns.worker_p50", Unit: Nanoseconds, Missing: closed,
		Doc: "how long half of the requests waited for a free worker, or longer"},
	{Key: "worker-p99", Name: "p99", Over: worker, From: "lateness_ns.worker_p99", Unit: Nanoseconds, Missing: closed,
		Doc: "how long one request of 100 waited for a free worker, or longer"},
	{Key: "backlog-half", Name: "half way", Over: backlog, From: "lateness_ns.backlog_half", Unit: Count, Missing: closed,
		Doc: "requests that were due and waited half way through the worst round"},
	{Key: "backlog-end", Name: "at the end", Over: backlog, From: "lateness_ns.backlog_end", Unit: Count, Missing: closed,
		Doc: "requests that were due and waited at the end of the worst round"},
	{Key: "saturated", Name: "saturated", From: "saturated_rounds", Unit: Count,
		Doc: "rounds whose backlog kept growing", text: saturated},
	{Key: "pool-wait", Name: "mean", Over: poolWait, From: "pool_wait.mean_ns", Unit: Nanoseconds, Missing: noPool,
		Doc: "wait of all commands of a request together for connections, the mean"},
	{Key: "pool-waited", Name: "waited", Over: poolWait, From: "pool_wait.waited_pct", Unit: Percent, Missing: noPool,
		Doc: "connections that were not free at once, of all that were taken"},
})

const (
	pacer    = "late by the pacer"
	worker   = "waiting for a worker"
	backlog  = "backlog, requests"
	poolWait = "pool wait"
	above    = "above the limit"
	settling = "commit or refund takes"
	cpu      = "CPU, µs"

	closed      = "the loop is closed"
	noPool      = "no client told how long it waited for connections"
	noCounter   = "the strategy shows no counter, or none was read"
	noSettle    = "callers settle nothing"
	noReference = "there is no reference loop to divide by"
	noTurn      = "no window ended in mid-run"
)

// Correctness is what was decided wrongly.
var Correctness = each(func(f *Figure) { f.Counts = Valid }, []Figure{
	{Key: "leak", Name: "leak", From: "leak.units", Unit: Units, Better: Lower, CSV: "leak_units", text: leak,
		Doc: "units admitted over the limit, certain..possible, and in percent of the limit times the trials"},
	{Key: "leak-possible", Name: "possible leak", From: "leak.possible", Unit: Units, Better: Lower, CSV: "leak_possible_units",
		Doc: "most units over the limit that some order of the events explains"},
	{Key: "leak-pct", Name: "leak, %\nof limit", From: "leak.pct_of_limit", Unit: Percent, Better: Lower, CSV: "leak_pct_of_limit",
		Doc: "certain leak in percent of the limit times the trials"},
	{Key: "leak-per-request", Name: "leak per request", Unit: Ratio, Better: Lower, Bench: "leak-units/op",
		Doc: "certain leak by the requests",
		run: func(r *results.Run) (float64, bool) { return float64(r.Leak.Units) / float64(max(r.Issued, 1)), true }},
	{Key: "leak-worst", Name: "worst\nwindow", From: "leak.worst_units", Unit: Units, Better: Lower, CSV: "worst_leak_units",
		Doc: "largest leak of one subject and window, and the strictest bound that the strategy declares"},
	{Key: "leaked-trials", Name: "trials\nthat leaked", From: "leak.leaked_trials", Unit: Count, Better: Lower,
		CSV: "leaked_trials", text: trials,
		Doc: "windows that leaked, of those of which more than the limit was asked"},
	{Key: "trials", Name: "trials", From: "leak.trials", Unit: Count, CSV: "trials",
		Doc: "windows of which more than the limit was asked"},
	{Key: "false-rejects", Name: "false\nrejects", From: "false_rejects.count", Noun: "requests", Unit: Count, Better: Lower,
		CSV: "false_rejects", text: falseRejects,
		Doc: "of valid requests, certain..possible"},
	{Key: "false-rejects-possible", Name: "possible false rejects", From: "false_rejects.possible", Unit: Count, Better: Lower,
		CSV: "false_rejects_possible", Doc: "rejected requests for which there was room at some moment"},
	{Key: "false-rejects-pct", Name: "false\nrejects", From: "false_rejects.pct_of_valid_requests", Unit: Percent, Better: Lower,
		CSV: "false_rejects_pct", Bench: "false-rejects-%",
		Doc: "requests that were certainly rejected wrongly, in percent of all requests that had to be admitted"},
	{Key: "drift", Name: "drift\nat rest", From: "drift.units", Unit: Units, Better: Lower,
		CSV: "drift_units", Missing: noCounter, text: drift,
		Doc: "distance of the worst counter from what callers were told, nothing in flight", of: tier((*results.Summary).AtRest)},
	{Key: "drift-pct", Name: "drift", From: "drift.pct_of_limit", Unit: Percent, CSV: "drift_pct_of_limit", Bench: "drift-%",
		Missing: noCounter, Doc: "drift in percent of the limit in force"},
	{Key: "drift-after-jobs", Name: "drift after jobs", Unit: Units, Better: Lower, Missing: noCounter,
		Doc: "the same after background jobs ran until idle", of: tier((*results.Summary).AfterJobs)},
	{Key: "violations", Name: "violations", Unit: Count, Better: Lower, Doc: "declared clauses that were broken", of: violations},
	{Key: "excursions", Name: "times", Over: above, From: "leak.excursions", Unit: Count, Better: Lower, Blank: true,
		Doc: "stretches of time above the limit of a standing quota"},
	{Key: "unit-seconds", Name: "unit-seconds", Over: above, From: "leak.unit_seconds", Unit: Ratio, Better: Lower, Blank: true,
		Doc: "units above the limit of a standing quota, times the seconds for which they were"},
	{Key: "rolling", Name: "worst rolling\nwindow", From: "rolling.multiple", Unit: Ratio, Better: Lower, Missing: noTurn, text: rolling,
		Doc: "most that was admitted in a span as long as a window, by the limit"},
	{Key: "rolling-units", Name: "admitted\nin it", From: "rolling.worst_units", Unit: Units, Better: Lower,
		Missing: noTurn, text: rollingUnits,
		Doc: "units admitted in the worst rolling window"},
	{Key: "rolling-leak", Name: "leak", From: "rolling.units", Unit: Units, Better: Lower, Missing: noTurn, text: rollingLeak,
		Doc: "leak judged by every span as long as a window"},
})

// Cost is what a decision takes.
var Cost = []Figure{
	{Key: "commands", Name: "commands", From: "cost.commands", Unit: PerDecision, Better: Lower, CSV: "commands",
		Doc: "commands to Redis"},
	{Key: "round-trips", Name: "trips", From: "cost.round_trips", Unit: PerDecision, Better: Lower, CSV: "round_trips",
		Doc: "round trips to any store"},
	{Key: "bytes", Name: "bytes", From: "cost.bytes", Noun: "bytes", Unit: PerDecision, Better: Lower, CSV: "bytes",
		Doc: "bytes in both directions"},
	{Key: "sql", Name: "SQL", From: "cost.sql", Unit: PerDecision, Better: Lower, CSV: "sql",
		Doc: "SQL statements to a server", text: statements},
	{Key: "model-sql", Name: "SQL of the model", From: "cost.model_sql", Unit: PerDecision, Better: Lower, CSV: "model_sql",
		Doc: "SQL statements to the in-process model"},
	{Key: "all-commands", Name: "commands and SQL\nper decision", Unit: PerDecision, Better: Lower, Bench: "cmds/op",
		Doc: "commands and statements to stores, per decision",
		of:  func(s *results.Summary) (float64, error) { return s.Cost.PerDecision(), nil },
		run: func(r *results.Run) (float64, bool) { return r.Cost.PerDecision(), true }},
	{Key: "allocs", Name: "allocs", From: "cost.allocs", Noun: "allocations", Unit: PerDecision, Better: Lower, CSV: "allocs",
		Doc: "allocations of the whole process"},
	{Key: "keys", Name: "keys", From: "cost.keys_at_end", Unit: Count, Better: Lower, CSV: "keys_at_end",
		Doc: "keys that are left in Redis"},
	{Key: "keys-without-ttl", Name: "keys without\nTTL", From: "cost.keys_without_ttl", Noun: "keys", Unit: Count, Better: Lower,
		Doc: "keys without a time to live, of all keys that are left", text: keysWithoutTTL},
	{Key: "client-cpu", Name: "client", Over: cpu, From: "cost.client_cpu_ns", Unit: Nanoseconds, Better: Lower, CSV: "client_cpu_ns",
		Doc:  "processor time of this process per decision, the load generator or the simulation included",
		text: micros(func(c *results.Cost) float64 { return c.ClientCPU })},
	{Key: "redis-cpu", Name: "Redis", Over: cpu, From: "cost.redis_cpu_ns", Unit: Nanoseconds, Better: Lower, CSV: "redis_cpu_ns",
		Doc:  "processor time of Redis servers per decision",
		text: micros(func(c *results.Cost) float64 { return c.RedisCPU })},
	{Key: "postgres-cpu", Name: "PostgreSQL", Over: cpu, From: "cost.postgres_cpu_ns", Unit: Nanoseconds, Better: Lower,
		CSV: "postgres_cpu_ns", Doc: "processor time of PostgreSQL servers per decision",
		text: micros(func(c *results.Cost) float64 { return c.PostgresCPU })},
	{Key: "run-queue", Name: "run queue,\nµs", From: "cost.run_queue_ns", Unit: Nanoseconds, Better: Lower,
		Doc:  "how long threads of this process were ready to run and did not, per decision",
		text: micros(func(c *results.Cost) float64 { return c.RunQueue })},
}

// Settlement is what became of admitted requests.
var Settlement = []Figure{
	{Key: "commits", Name: "commits", From: "settlement.commits", Unit: Count, Missing: noSettle, Doc: "commits that succeeded"},
	{Key: "refunds", Name: "refunds", From: "settlement.refunds", Unit: Count, Missing: noSettle,
		Doc: "refunds after failed work and deletions"},
	{Key: "abandoned", Name: "abandoned", From: "settlement.abandoned", Unit: Count, Missing: noSettle,
		Doc: "requests that were never settled"},
	{Key: "settlement-errors", Name: "errors", From: "settlement.errors", Unit: Count, Better: Lower, Missing: noSettle,
		Doc: "commits and refunds that ended in an error"},
	{Key: "settlement-overrun", Name: "overrun,\nunits", From: "settlement.overrun_units", Unit: Units, Missing: noSettle, Blank: true,
		Doc: "units that commits used beyond their reservations"},
}

// The tables of reports, as lists of keys.
var (
	CorrectnessTable = []string{"admitted-pct", "errors", "leak", "leak-pct", "leak-worst", "leaked-trials", "false-rejects", "drift"}
	RollingTable     = []string{"rolling", "rolling-units", "rolling-leak"}
	DelayTable       = []string{"pacer-p50", "pacer-p99", "worker-p50", "worker-p99", "backlog-half", "backlog-end", "saturated"}
	ExactCostTable   = []string{"commands", "round-trips", "sql", "bytes"}
	CostTable        = append(slices.Clone(ExactCostTable), "allocs")
	ProcessTable     = []string{"client-cpu", "redis-cpu", "postgres-cpu", "run-queue", "keys-without-ttl"}
	SettlementTable  = []string{
		"commits", "refunds", "abandoned", "settlement-errors", "settlement-overrun", "excursions", "unit-seconds",
		"settlement.p50", "settlement.p99",
	}
)

// each sets what all of a group have in common.
func each(set func(*Figure), all []Figure) []Figure {
	for i := range all {
		set(&all[i])
	}
	return all
}

// latencies are the percentiles of each kind of time.
func latencies() (out []Figure) {
	points := []struct{ name, title, field, doc string }{
		{"p50", "", "p50", "latency that half of the requests stay within"},
		{"p90", "", "p90", "latency that 9 of 10 requests stay within"},
		{"p99", "", "p99", "latency that 99 of 100 requests stay within, and its interval over rounds"},
		{"p99.9", "", "p999", "latency that 999 of 1,000 requests stay within"},
		{"p99.99", "", "p9999", "latency that 9,999 of 10,000 requests stay within"},
		{"max", "largest", "max", "largest latency"},
	}
	for _, kind := range []Figure{
		{From: "latency.", AtRate: true, Counts: Response},
		{Key: "service.", Over: "service", From: "service_ns.", AtRate: true, Counts: Timed, CSV: "service_", Bench: "p99-ns",
			Doc: ", from the actual start of a request"},
		{Key: "response.", Over: "response", From: "response_ns.", AtRate: true, Counts: Response, CSV: "response_", Bench: "response-p99-ns",
			Missing: closed,
			Doc:     ", from the intended start of a request"},
		{Key: "settlement.", Over: settling, From: "settlement.service_ns.", CSV: "settlement_", Missing: noSettle,
			Doc: ", of commits and refunds"},
		{Key: "saturated.", Over: "saturated service", From: "service_ns.", Counts: Timed,
			Doc: ", from the actual start of a request, of callers that never pause"},
		{Key: "bare.", Over: "bare client", From: "reference_ns.", AtRate: true, Counts: Timed, Missing: noReference,
			Doc: ", of a bare client's INCR in the same rounds"},
	} {
		if kind.CSV != "" {
			out = append(out, Figure{Key: kind.Key + "samples", Name: "samples", Over: kind.Over, Unit: Count,
				CSV: kind.CSV + "samples", Doc: "latencies that were measured" + kind.Doc,
				run: func(r *results.Run) (float64, bool) { return read(r, kind.From+"samples") }})
		}
		for _, p := range points {
			f := kind
			f.Key = kind.Key + p.name
			f.Name = cmp.Or(p.title, p.name)
			f.From = kind.From + p.field
			f.Doc = p.doc + kind.Doc
			f.Unit, f.Better = Nanoseconds, Lower
			if p.name != "p99" {
				f.Bench = ""
			}
			if kind.CSV != "" {
				f.CSV = kind.CSV + p.field + "_ns"
			}
			out = append(out, f)
		}
	}
	return out
}

func timePerDecision(r *results.Run) (float64, bool) {
	if r.Issued == 0 || r.Params.Loop == results.OpenLoop {
		return 0, false
	}
	return float64(r.ElapsedNS) / float64(r.Issued), true
}

func ratio(r *results.Run) (float64, bool) {
	return r.ThroughputPerS / r.ReferencePerS, r.ReferencePerS > 0
}

// tier is the size of the drift of the worst tier.
func tier(f func(*results.Summary) (results.TierDrift, bool)) func(*results.Summary) (float64, error) {
	return func(s *results.Summary) (float64, error) {
		t, ok := f(s)
		if !ok {
			return 0, errors.New(noCounter)
		}
		return float64(format.Magnitude(t.Units)), nil
	}
}

// violations counts the clauses that were broken.
func violations(s *results.Summary) (n float64, err error) {
	for x := s; x != nil; x = x.Paced {
		for _, c := range x.Guarantee {
			if c.Verdict == results.Broken {
				n++
			}
		}
	}
	return n, nil
}

// Strictest is the declared clause on leaks that allows for the least, or nil.
func Strictest(s *results.Summary) (least *results.Clause) {
	for i := range s.Guarantee {
		if g := &s.Guarantee[i]; g.Property == results.LeakProperty && (least == nil || g.Bound < least.Bound) {
			least = g
		}
	}
	return least
}

// Bounded reports whether a clause has a bound.
func Bounded(c *results.Clause) bool { return c != nil && c.Bound != quota.Unbounded }
