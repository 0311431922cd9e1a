package figures

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"slices"
	"sync"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// declarations are all figures, and the tables of reports as lists of keys.
//
//go:embed figures.json
var declarations []byte

// registry is what figures.json declares.
type registry struct {
	Groups []struct {
		Name    string
		Figures []Figure
	}
	Tables map[string][]string
}

// declared reads the declarations, and gives figures the functions that have their keys.
var declared = sync.OnceValue(func() (r registry) {
	decoder := json.NewDecoder(bytes.NewReader(declarations))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		panic("figures.json: " + err.Error())
	}
	for _, g := range r.Groups {
		for i := range g.Figures {
			figure := &g.Figures[i]
			figure.of = computed[figure.Key]
			figure.run = ofRound[figure.Key]
			figure.text = shown[figure.Key]
		}
	}
	return r
})

// Group are the figures of one name, e.g. "cost".
func Group(name string) []Figure {
	for _, g := range declared().Groups {
		if g.Name == name {
			return g.Figures
		}
	}
	panic("figures: there is no group " + name)
}

// Table are the keys of a table of reports, e.g. "settlement".
func Table(name string) []string {
	if keys := declared().Tables[name]; keys != nil {
		return keys
	}
	panic("figures: there is no table " + name)
}

// All are the figures in their order: a group after the other.
func All() (out []Figure) {
	for _, g := range declared().Groups {
		out = slices.Concat(out, g.Figures)
	}
	return out
}

// computed are figures over all rounds that no summary has as they are, by key. They are missing if ok
// is false.
var computed = map[string]func(*results.Summary) (value float64, ok bool){
	"admitted-pct": func(summary *results.Summary) (float64, bool) { return summary.AdmittedPct(), true },
	"errors-pct": func(summary *results.Summary) (float64, bool) {
		return stat.Percent(summary.Errors, summary.Issued), true
	},
	"job-p99": jobP99,
	"others": func(summary *results.Summary) (float64, bool) {
		return 100 * summary.OthersShare, summary.OthersShare > 0
	},
	"leak-tier":        func(summary *results.Summary) (float64, bool) { return worstTier(summary.LeakTiers) },
	"drift":            tier((*results.Summary).AtRest),
	"drift-after-jobs": tier((*results.Summary).AfterJobs),
	"lost":             func(summary *results.Summary) (float64, bool) { return summary.Drift.Lost() },
	"violations":       violations,
	"all-commands":     func(summary *results.Summary) (float64, bool) { return summary.Cost.PerDecision(), true },
}

// ofRound are the same of one round.
var ofRound = map[string]func(*results.Run) (value float64, ok bool){
	"time":      timePerDecision,
	"ratio":     ratio,
	"job-p99":   (*results.Run).JobP99,
	"others":    func(run *results.Run) (float64, bool) { return 100 * run.OthersShare, run.OthersShare > 0 },
	"lost":      func(run *results.Run) (float64, bool) { return run.Drift.Lost() },
	"leak-tier": func(run *results.Run) (float64, bool) { return worstTier(run.LeakTiers) },
	"leak-per-request": func(run *results.Run) (float64, bool) {
		return float64(run.Leak.Units) / float64(max(run.Issued, 1)), true
	},
	"all-commands": func(run *results.Run) (float64, bool) { return run.Cost.PerDecision(), true },
}

// shown are figures that tables show in a form of their own.
var shown = map[string]func(*results.Summary, *Notes) string{
	"admitted":      admitted,
	"degraded":      degraded,
	"ratio":         ratioText,
	"job-p99":       jobP99Text,
	"saturated":     saturated,
	"leak":          leak,
	"leaked-trials": trials,
	"false-rejects": falseRejects,
	"drift":         drift,
	"rolling": rolling(func(rolling *results.Rolling, _ string) string {
		return format.Digits(rolling.Multiple) + " x limit"
	}),
	"rolling-units": rolling(func(rolling *results.Rolling, unit string) string {
		return format.Units(rolling.WorstUnits, unit)
	}),
	"rolling-leak": rolling(func(rolling *results.Rolling, _ string) string {
		return format.Range(rolling.Units, rolling.Possible)
	}),
	"sql":              statements,
	"keys-without-ttl": keysWithoutTTL,
	"client-cpu":       micros(func(cost *results.Cost) float64 { return cost.ClientCPU }),
	"redis-cpu":        micros(func(cost *results.Cost) float64 { return cost.RedisCPU }),
	"postgres-cpu":     micros(func(cost *results.Cost) float64 { return cost.PostgresCPU }),
	"run-queue":        micros(func(cost *results.Cost) float64 { return cost.RunQueue }),
}

func timePerDecision(run *results.Run) (float64, bool) {
	if run.Issued == 0 || run.Params.Loop == codes.OpenLoop {
		return 0, false
	}
	return float64(run.ElapsedNS) / float64(run.Issued), true
}

func ratio(run *results.Run) (float64, bool) {
	return run.ThroughputPerS / run.ReferencePerS, run.ReferencePerS > 0
}

func jobP99(summary *results.Summary) (value float64, ok bool) {
	if summary.JobP99 == nil {
		return 0, false
	}
	return summary.JobP99.Value, true
}

// worstTier is the leak of the tier that let most through.
func worstTier(leak map[string]int64) (value float64, ok bool) {
	for _, n := range leak {
		value = max(value, float64(n))
	}
	return value, len(leak) > 0
}

// tier is the size of the drift of the worst tier.
func tier(f func(*results.Summary) (results.TierDrift, bool)) func(*results.Summary) (float64, bool) {
	return func(summary *results.Summary) (float64, bool) {
		drift, ok := f(summary)
		return float64(format.Magnitude(drift.Units)), ok
	}
}

// violations counts the clauses that were broken.
func violations(summary *results.Summary) (n float64, _ bool) {
	for x := summary; x != nil; x = x.Paced {
		for _, clause := range x.Guarantee {
			if clause.Verdict == results.Broken {
				n++
			}
		}
	}
	return n, true
}

// Strictest is the declared clause on leaks that allows for the least, or nil.
func Strictest(summary *results.Summary) (least *results.Clause) {
	for i := range summary.Guarantee {
		if clause := &summary.Guarantee[i]; clause.Property == string(quota.PropertyLeak) &&
			(least == nil || clause.Bound < least.Bound) {
			least = clause
		}
	}
	return least
}

// Bounded reports whether a clause has a bound.
func Bounded(clause *results.Clause) bool { return clause != nil && clause.Bound != quota.Unbounded }
