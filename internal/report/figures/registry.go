package figures

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"slices"
	"sync"

	"github.com/quotabench/quotabench/internal/kit/format"
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
	d := json.NewDecoder(bytes.NewReader(declarations))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		panic("figures.json: " + err.Error())
	}
	for _, g := range r.Groups {
		for i := range g.Figures {
			f := &g.Figures[i]
			f.of = computed[f.Key]
			f.run = ofRound[f.Key]
			f.text = shown[f.Key]
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
var computed = map[string]func(*results.Summary) (x float64, ok bool){
	"admitted-pct":     func(s *results.Summary) (float64, bool) { return s.AdmittedPct(), true },
	"errors-pct":       func(s *results.Summary) (float64, bool) { return results.Percent(s.Errors, s.Issued), true },
	"job-p99":          jobP99,
	"others":           func(s *results.Summary) (float64, bool) { return 100 * s.OthersShare, s.OthersShare > 0 },
	"leak-tier":        func(s *results.Summary) (float64, bool) { return worstTier(s.LeakTiers) },
	"drift":            tier((*results.Summary).AtRest),
	"drift-after-jobs": tier((*results.Summary).AfterJobs),
	"lost":             func(s *results.Summary) (float64, bool) { return s.Drift.Lost() },
	"violations":       violations,
	"all-commands":     func(s *results.Summary) (float64, bool) { return s.Cost.PerDecision(), true },
}

// ofRound are the same of one round.
var ofRound = map[string]func(*results.Run) (x float64, ok bool){
	"time":             timePerDecision,
	"ratio":            ratio,
	"job-p99":          (*results.Run).JobP99,
	"others":           func(r *results.Run) (float64, bool) { return 100 * r.OthersShare, r.OthersShare > 0 },
	"lost":             func(r *results.Run) (float64, bool) { return r.Drift.Lost() },
	"leak-tier":        func(r *results.Run) (float64, bool) { return worstTier(r.LeakTiers) },
	"leak-per-request": func(r *results.Run) (float64, bool) { return float64(r.Leak.Units) / float64(max(r.Issued, 1)), true },
	"all-commands":     func(r *results.Run) (float64, bool) { return r.Cost.PerDecision(), true },
}

// shown are figures that tables show in a form of their own.
var shown = map[string]func(*results.Summary, *Notes) string{
	"admitted":         admitted,
	"degraded":         degraded,
	"ratio":            ratioText,
	"job-p99":          jobP99Text,
	"saturated":        saturated,
	"leak":             leak,
	"leaked-trials":    trials,
	"false-rejects":    falseRejects,
	"drift":            drift,
	"rolling":          rolling(func(r *results.Rolling, _ string) string { return format.Digits(r.Multiple) + " x limit" }),
	"rolling-units":    rolling(func(r *results.Rolling, unit string) string { return format.Units(r.WorstUnits, unit) }),
	"rolling-leak":     rolling(func(r *results.Rolling, _ string) string { return format.Range(r.Units, r.Possible) }),
	"sql":              statements,
	"keys-without-ttl": keysWithoutTTL,
	"client-cpu":       micros(func(c *results.Cost) float64 { return c.ClientCPU }),
	"redis-cpu":        micros(func(c *results.Cost) float64 { return c.RedisCPU }),
	"postgres-cpu":     micros(func(c *results.Cost) float64 { return c.PostgresCPU }),
	"run-queue":        micros(func(c *results.Cost) float64 { return c.RunQueue }),
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

func jobP99(s *results.Summary) (x float64, ok bool) {
	if s.JobP99 == nil {
		return 0, false
	}
	return s.JobP99.Value, true
}

// worstTier is the leak of the tier that let most through.
func worstTier(leak map[string]int64) (x float64, ok bool) {
	for _, n := range leak {
		x = max(x, float64(n))
	}
	return x, len(leak) > 0
}

// tier is the size of the drift of the worst tier.
func tier(f func(*results.Summary) (results.TierDrift, bool)) func(*results.Summary) (float64, bool) {
	return func(s *results.Summary) (float64, bool) {
		t, ok := f(s)
		return float64(format.Magnitude(t.Units)), ok
	}
}

// violations counts the clauses that were broken.
func violations(s *results.Summary) (n float64, _ bool) {
	for x := s; x != nil; x = x.Paced {
		for _, c := range x.Guarantee {
			if c.Verdict == results.Broken {
				n++
			}
		}
	}
	return n, true
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
