package compare

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
)

// Reference stands in a gate for the same figure of the reference loop.
const Reference = "reference"

// runFields are what gates on runs can name, each over all rounds that count. An error
// says why there is no such figure.
var runFields = map[string]func(*results.Summary) (float64, error){
	Leak:                 whole(func(s *results.Summary) int64 { return s.Leak.Units }),
	"leak-possible":      whole(func(s *results.Summary) int64 { return s.Leak.Possible }),
	WorstLeak:            whole(func(s *results.Summary) int64 { return s.Leak.WorstUnits }),
	"leak-pct":           number(func(s *results.Summary) float64 { return s.Leak.PctOfLimit }),
	"leaked-trials":      whole(func(s *results.Summary) int64 { return s.Leak.LeakedTrials }),
	FalseRejects:         whole(func(s *results.Summary) int64 { return s.FalseRejects.Count }),
	"false-rejects-pct":  number(func(s *results.Summary) float64 { return s.FalseRejects.PctOfValid }),
	DriftAtRest:          tier((*results.Summary).AtRest),
	"drift-after-jobs":   tier((*results.Summary).AfterJobs),
	Violations:           number(violated),
	Errors:               whole(func(s *results.Summary) int64 { return s.Errors }),
	"degraded":           whole(func(s *results.Summary) int64 { return s.Degraded }),
	Commands:             number(func(s *results.Summary) float64 { return s.Cost.Commands }),
	RoundTrips:           number(func(s *results.Summary) float64 { return s.Cost.RoundTrips }),
	Bytes:                number(func(s *results.Summary) float64 { return s.Cost.Bytes }),
	SQL:                  number(func(s *results.Summary) float64 { return s.Cost.SQL }),
	"allocs":             number(func(s *results.Summary) float64 { return s.Cost.Allocs }),
	KeysWithoutTTL:       whole(func(s *results.Summary) int64 { return s.Cost.KeysWithoutTTL }),
	Throughput:           throughput,
	"p50":                latency("p50"),
	"p90":                latency("p90"),
	"p99":                latency("p99"),
	"p99.9":              latency("p99.9"),
	"p99.99":             latency("p99.99"),
	"service.p50":        service("p50"),
	"service.p90":        service("p90"),
	"service.p99":        service("p99"),
	"service.p99.9":      service("p99.9"),
	"service.p99.99":     service("p99.99"),
	"pool-wait":          poolWait,
	"settlement-overrun": settled(func(x *results.SettlementSummary) int64 { return x.OverrunUnits }),
	"settlement-errors":  settled(func(x *results.SettlementSummary) int64 { return x.Errors }),
}

// RunFields are the names that [ParseRunGate] takes.
func RunFields() []string { return slices.Sorted(maps.Keys(runFields)) }

// SearchFields are the names that [ParseSearchGate] takes: the properties, each with the
// units by which a schedule breaks it, or 1 where it has none; "steps" of the shortest
// schedule of all; and "counterexamples", how many properties break.
func SearchFields(properties []results.Property) []string {
	out := []string{Counterexamples, Steps}
	for _, p := range properties {
		out = append(out, string(p))
	}
	return out
}

func searchField(s *results.Search, name string) (float64, error) {
	switch name {
	case Counterexamples:
		return float64(len(s.Findings)), nil
	case Steps:
		fewest := math.Inf(1) // no schedule is as short as none
		for i := range s.Findings {
			fewest = min(fewest, float64(len(s.Findings[i].Steps)))
		}
		return fewest, nil
	}
	if !slices.Contains(s.Properties, results.Property(name)) {
		return 0, fmt.Errorf("%s was not looked for", name)
	}
	f := s.Found(results.Property(name))
	if f == nil {
		return 0, nil
	}
	return max(1, float64(format.Magnitude(f.Units))), nil
}

func whole(f func(*results.Summary) int64) func(*results.Summary) (float64, error) {
	return func(s *results.Summary) (float64, error) { return float64(f(s)), nil }
}

func number(f func(*results.Summary) float64) func(*results.Summary) (float64, error) {
	return func(s *results.Summary) (float64, error) { return f(s), nil }
}

var (
	errNoCounter = errors.New("the strategy shows no counter, or none was read")
	errNoSettle  = errors.New("callers settle nothing")
	errStruck    = errors.New("its timings are not measurable here")
)

// tier is the size of the drift of the worst tier.
func tier(f func(*results.Summary) (results.TierDrift, bool)) func(*results.Summary) (float64, error) {
	return func(s *results.Summary) (float64, error) {
		t, ok := f(s)
		if !ok {
			return 0, errNoCounter
		}
		return float64(format.Magnitude(t.Units)), nil
	}
}

func settled(f func(*results.SettlementSummary) int64) func(*results.Summary) (float64, error) {
	return func(s *results.Summary) (float64, error) {
		if s.Settled == nil {
			return 0, errNoSettle
		}
		return float64(f(s.Settled)), nil
	}
}

// violated counts the clauses that were broken.
func violated(s *results.Summary) (n float64) {
	for x := s; x != nil; x = x.Paced {
		for _, c := range x.Guarantee {
			if c.Verdict == results.Broken {
				n++
			}
		}
	}
	return n
}

func throughput(s *results.Summary) (float64, error) {
	if !s.TimingsCount {
		return 0, errStruck
	}
	return s.Throughput.Value, nil
}

var percentileFields = map[string]func(*results.Percentiles) results.Percentile{
	"p50":    func(p *results.Percentiles) results.Percentile { return p.P50 },
	"p90":    func(p *results.Percentiles) results.Percentile { return p.P90 },
	"p99":    func(p *results.Percentiles) results.Percentile { return p.P99 },
	"p99.9":  func(p *results.Percentiles) results.Percentile { return p.P999 },
	"p99.99": func(p *results.Percentiles) results.Percentile { return p.P9999 },
}

func isLatency(field string) bool { return percentileFields[field] != nil }

// isTime reports whether a field is in nanoseconds, so that its number may have a unit.
func isTime(field string) bool {
	return isLatency(field) || field == "pool-wait" || strings.HasPrefix(field, "service.")
}

func hasReference(field string) bool { return field == Throughput || isLatency(field) }

// latency is what callers wait for, at the common rate where there is one.
func latency(name string) func(*results.Summary) (float64, error) {
	return func(s *results.Summary) (float64, error) {
		x := s.AtRate()
		if !x.TimingsCount || x.Response != nil && !x.ResponseCounts {
			return 0, errStruck
		}
		return shown(percentileFields[name](x.Latency()))
	}
}

// service is the time from the actual start of a request, in the loop that latency is
// taken from.
func service(name string) func(*results.Summary) (float64, error) {
	return func(s *results.Summary) (float64, error) {
		x := s.AtRate()
		if !x.TimingsCount {
			return 0, errStruck
		}
		return shown(percentileFields[name](&x.Service))
	}
}

// poolWait is the mean wait of a request for connections, in the same loop.
func poolWait(s *results.Summary) (float64, error) {
	x := s.AtRate()
	if x.PoolWait == nil {
		return 0, errors.New("no client told how long it waited for connections")
	}
	return x.PoolWait.MeanNS.Value, nil
}

// shown is a percentile that may be called one.
func shown(p results.Percentile) (float64, error) {
	if !p.Shown() {
		return 0, errors.New("it cannot be shown: " + string(p.Status))
	}
	return p.Value, nil
}
