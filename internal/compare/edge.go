package compare

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
)

// Held says how a condition fares at one point of a sweep.
type Held struct {
	// Holds is set if the condition does, and an open loop keeps up with its rate.
	Holds bool
	// Unknown is set if there is no figure that counts, which is taken for no.
	Unknown bool
	// Detail is the value that the condition was checked against, or why it does not hold
	// or is not known.
	Detail string
}

// At checks the condition against one point. An open loop that cannot keep up with its
// rate holds nothing: its latency is that of a queue that grows for as long as it runs.
func (g Gate) At(s *results.Summary) Held {
	if s.AtRate().Params.Loop == results.OpenLoop && s.Overloaded() {
		return Held{Detail: "it cannot keep up with the rate"}
	}
	r := g.run(s, true)
	if r.Head == nil {
		return Held{Unknown: true, Detail: cmp.Or(r.Detail, "it has no finite value")}
	}
	return Held{Holds: r.Verdict == Worse, Detail: g.valueText(*r.Head)}
}

// Edge says where along a series a condition begins or ceases to hold.
type Edge struct {
	// Held at each point.
	Held []Held
	// From and To are the first and the last point of the only stretch in which it holds;
	// -1 if it holds nowhere. Stretches counts them.
	From, To, Stretches int
}

// Along checks the condition against the points of a series in their order.
func (g Gate) Along(s *results.SweepSeries) Edge {
	e := Edge{From: -1, To: -1}
	for i := range s.Points {
		h := g.At(s.Points[i].Summary)
		e.Held = append(e.Held, h)
		if !h.Holds {
			continue
		}
		if i == 0 || !e.Held[i-1].Holds {
			e.Stretches++
			e.From = i
		}
		e.To = i
	}
	if e.Stretches > 1 {
		e.From, e.To = -1, -1
	}
	return e
}

// pointText names the values of swept parameters.
func pointText(point map[string]string) string {
	return format.List(slices.Sorted(maps.Keys(point)), ", ", func(name string) string { return name + " " + point[name] })
}
