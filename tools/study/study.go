package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// rounds of a side, as in the study's question: 10 against 10.
const rounds = 10

// slower is the slowdown that has to be found.
const slower = 1.10

// scenario is a way in which two sides come to be measured. draw makes one comparison of
// unchanged code from the two sides' rounds; the study slows one strategy of the head down.
type scenario struct {
	name   string
	paired bool
	gates  int  // strategies in one comparison; 0 for one
	stages bool // what fails is measured again, as run --against does
	draw   func(rng *rand.Rand) (base, head []round)
}

// round is one repetition of one strategy, in decisions per second.
type round struct{ throughput, reference float64 }

// rates are the shares of comparisons, in percent.
type rates struct {
	Comparisons               int
	FalseAlarms, Inconclusive float64 // of unchanged code
	Detected, Missed          float64 // of code that is 10 % slower: failed, and passed
}

// study makes the scenario's comparisons twice each: unchanged, and with one strategy of
// the head slowed down. What it counts is what [compare.Compare] says.
func study(s scenario, comparisons int) (rates, error) {
	r := rates{Comparisons: comparisons}
	rng := rand.New(rand.NewPCG(1, 1))
	share := 100 / float64(comparisons)
	for range comparisons {
		var base, head results.File
		for gate := range max(s.gates, 1) {
			rounds, h := s.draw(rng)
			base.Runs = append(base.Runs, runs(gate, rounds)...)
			head.Runs = append(head.Runs, runs(gate, h)...)
		}
		for _, by := range []float64{1, slower} {
			for i := range rounds { // of the first strategy
				head.Runs[i].ThroughputPerS /= by
			}
			fails, open, err := s.outcome(rng, &base, &head, by)
			switch {
			case err != nil:
				return r, err
			case by == 1 && fails:
				r.FalseAlarms += share
			case by == 1 && open:
				r.Inconclusive += share
			case by > 1 && fails:
				r.Detected += share
			case by > 1 && !open:
				r.Missed += share
			}
		}
	}
	return r, nil
}

// outcome is what compare says: that the comparison fails, or that the first strategy's
// rounds cannot tell.
func (s scenario) outcome(rng *rand.Rand, base, head *results.File, by float64) (fails, open bool, err error) {
	comparison, err := s.compared(rng, [2]compare.Side{side("base", base), side("head", head)}, by)
	if err != nil {
		return false, false, err
	}
	first := slices.IndexFunc(comparison.Rows, func(row compare.Row) bool {
		return row.Figure == compare.Throughput && row.Strategy == label(0)
	})
	return !comparison.Passes(), comparison.Rows[first].Verdict == compare.Inconclusive, nil
}

// compared compares two sides, and in stages those that are drawn again.
func (s scenario) compared(rng *rand.Rand, sides [2]compare.Side, by float64) (*compare.Comparison, error) {
	options := compare.Options{Paired: s.paired}
	if !s.stages {
		return compare.Compare(sides[0], sides[1], options)
	}
	return compare.Staged(options, rounds, 1, nil, func(stage, _, _ int, flagged []string) ([2]compare.Side, error) {
		if stage == 1 {
			return sides, nil
		}
		var base, head results.File
		for gate := range max(s.gates, 1) {
			if !slices.Contains(flagged, label(gate)) {
				continue
			}
			rounds, h := s.draw(rng)
			for i := range h {
				if gate == 0 {
					h[i].throughput /= by
				}
			}
			base.Runs = append(base.Runs, runs(gate, rounds)...)
			head.Runs = append(head.Runs, runs(gate, h)...)
		}
		return [2]compare.Side{side("base", &base), side("head", &head)}, nil
	})
}

func side(name string, file *results.File) compare.Side {
	file.Kind = results.Measured
	return compare.Side{Name: name, File: file}
}

func label(gate int) string { return fmt.Sprintf("strategy-%d", gate) }

// runs are rounds as run records them, without a leak.
func runs(gate int, side []round) (out []results.Run) {
	for i, round := range side {
		out = append(out, results.Run{
			Identity: results.Identity{Strategy: label(gate)},
			Params:   results.Params{Label: label(gate), Load: results.Load{Loop: codes.ClosedLoop}}, Repetition: i + 1,
			Rates: results.Rates{ThroughputPerS: round.throughput, ReferencePerS: round.reference},
			Audit: results.Audit{Valid: true},
			Promises: results.Promises{
				Guarantee: []results.Clause{{Property: string(quota.PropertyLeak)}, {Property: string(quota.PropertyFalseReject)}},
			},
		})
	}
	return out
}

// window is 20 measurements in a row, from a place in one of the series.
func window(rng *rand.Rand, series [][]float64) []float64 {
	total := 0
	for _, values := range series {
		total += len(values) - 2*rounds + 1
	}
	at := rng.IntN(total)
	for _, values := range series {
		if n := len(values) - 2*rounds + 1; at >= n {
			at -= n
			continue
		}
		return slices.Clone(values[at : at+2*rounds])
	}
	panic("unreachable")
}

// pairs divides neighbours among the sides at random, as both sides on one machine do.
func pairs(rng *rand.Rand, rounds []round) (base, head []round) {
	for i := 0; i < len(rounds); i += 2 {
		round := rounds[i]
		b := rounds[i+1]
		if rng.IntN(2) == 0 {
			round, b = b, round
		}
		base = append(base, round)
		head = append(head, b)
	}
	return base, head
}

// source is where windows of rounds come from: what a strategy and the reference loop did
// in the same rounds, for as long as nothing but noise was there.
type source struct {
	name   string
	window func(rng *rand.Rand) (throughput, reference []float64)
	// noise is what a reference loop does in addition if the source has none of its own.
	noise func(rng *rand.Rand) []float64
}

// recorded are series of throughput alone: the reference loop shows nothing of what the
// machine did. If something is added to that, it has the noise of another window.
func recorded(name string, series [][]float64) source {
	return source{
		name: name,
		window: func(rng *rand.Rand) ([]float64, []float64) {
			values := window(rng, series)
			return values, slices.Repeat([]float64{values[0]}, len(values))
		},
		noise: func(rng *rand.Rand) []float64 { return window(rng, series) },
	}
}

// generated is a machine whose speed wanders by 2 %, with a strategy and a reference loop
// that vary by 2 % each on their own.
func generated() source {
	w := func(rng *rand.Rand) (throughput, reference []float64) {
		level := 0.02 * rng.NormFloat64()
		for range 2 * rounds {
			level = 0.9*level + 0.0087*rng.NormFloat64()
			throughput = append(throughput, 60_000*math.Exp(level+0.02*rng.NormFloat64()))
			reference = append(reference, 80_000*math.Exp(level+0.02*rng.NormFloat64()))
		}
		return throughput, reference
	}
	return source{name: "generated", window: w}
}

// disturbed is a machine as the study of rounds has it: rounds differ by 10 %, and each strategy by 5 % on its own; one
// round in twenty stands still for up to half of its time; the speed drifts by 30 %. If it is busy, other programs take
// a share of the processor from half of all rounds, of each in another amount.
func disturbed(busy bool) source {
	const (
		between = 0.10
		own     = 0.05
		drift   = 0.30
		stalled = 0.05
	)
	speed := func(rng *rand.Rand) float64 {
		factor := math.Exp(own * rng.NormFloat64())
		if rng.Float64() < stalled {
			factor *= 1 - rng.Float64()/2
		}
		return factor
	}
	window := func(rng *rand.Rand) (throughput, reference []float64) {
		busyFrom := rng.IntN(rounds + 1)
		level := 1.0
		for i := range 2 * rounds {
			if i%2 == 0 { // both sides of a pair are measured one after the other
				level = math.Exp(between*rng.NormFloat64() + drift*(float64(i)/(2*rounds-1)-0.5))
			}
			taken := 1.0
			if busy && i >= busyFrom && i < busyFrom+rounds {
				taken = 1 + 4*rng.Float64()
			}
			throughput = append(throughput, 60_000*level*speed(rng)/taken)
			reference = append(reference, 80_000*level*speed(rng)/taken)
		}
		return throughput, reference
	}
	name := "generated: heavy tails, stalls and drift"
	if busy {
		name += ", half of all rounds busy"
	}
	return source{name: name, window: window}
}

// against is how run --against measures: in pairs, and again what seems to be worse.
func against(s source) []scenario {
	draw := func(rng *rand.Rand) (base, head []round) { return pairs(rng, s.plain(rng)) }
	return []scenario{
		{name: "random pairs, two stages", paired: true, stages: true, draw: draw},
		{name: "random pairs, two stages, 20 strategies", paired: true, gates: 20, stages: true, draw: draw},
	}
}

// plain are rounds as the source has them.
func (s source) plain(rng *rand.Rand) (out []round) {
	throughput, reference := s.window(rng)
	for i, value := range throughput {
		out = append(out, round{value, reference[i]})
	}
	return out
}

// on a machine whose speed changes, and the reference loop's with it.
func (s source) on(rng *rand.Rand, speed func(i int) float64) []round {
	out := s.plain(rng)
	var noise []float64
	if s.noise != nil {
		noise = s.noise(rng)
	}
	for i := range out {
		if noise != nil {
			out[i].reference = noise[i]
		}
		out[i].throughput *= speed(i)
		out[i].reference *= speed(i)
	}
	return out
}

// blind is the same if the reference loop has nothing of the change.
func (s source) blind(rng *rand.Rand, speed func(i int) float64) []round {
	out := s.plain(rng)
	for i := range out {
		out[i].throughput *= speed(i)
	}
	return out
}

// drifting is a machine that becomes faster or slower by 10 % over all rounds.
func drifting(rng *rand.Rand) func(int) float64 {
	sign := float64(1 - 2*rng.IntN(2))
	return func(i int) float64 { return math.Exp(sign * 0.10 * float64(i) / (2*rounds - 1)) }
}

// stepping is one that changes by 20 % where the second side begins.
func stepping(rng *rand.Rand) func(int) float64 {
	sign := float64(1 - 2*rng.IntN(2))
	return func(i int) float64 {
		if i < rounds {
			return 1
		}
		return math.Exp(sign * 0.20)
	}
}

// scenarios are the ways to measure two sides with rounds of one source.
func scenarios(s source) []scenario {
	type sides = func(*rand.Rand) ([]round, []round)
	paired := func(draw func(*rand.Rand) []round) sides {
		return func(rng *rand.Rand) ([]round, []round) { return pairs(rng, draw(rng)) }
	}
	files := func(draw func(*rand.Rand) []round) sides {
		return func(rng *rand.Rand) ([]round, []round) { w := draw(rng); return w[:rounds], w[rounds:] }
	}
	drift := func(rng *rand.Rand) []round { return s.on(rng, drifting(rng)) }
	return []scenario{
		{"random pairs", true, 0, false, paired(s.plain)},
		{"random pairs, the machine drifts by 10 %", true, 0, false, paired(drift)},
		{"random pairs, 20 strategies", true, 20, false, paired(s.plain)},
		{"random pairs, two stages", true, 0, true, paired(s.plain)},
		{"random pairs, two stages, the machine drifts by 10 %", true, 0, true, paired(drift)},
		{"random pairs, two stages, 20 strategies", true, 20, true, paired(s.plain)},
		{"two files", false, 0, false, files(s.plain)},
		{"two files, 20 strategies", false, 20, false, files(s.plain)},
		{"two files, the machine drifts by 10 %", false, 0, false, files(drift)},
		{"two files, the machine changes by 20 % in between", false, 0, false, files(func(rng *rand.Rand) []round {
			return s.on(rng, stepping(rng))
		})},
		{"two files, the machine drifts by 10 % and the reference loop does not", false, 0, false,
			files(func(rng *rand.Rand) []round {
				return s.blind(rng, drifting(rng))
			})},
		{"two files, the machine drifts by 10 %, without a reference loop", false, 0, false,
			files(func(rng *rand.Rand) []round {
				return unreferenced(drift(rng))
			})},
	}
}

func unreferenced(rounds []round) []round {
	for i := range rounds {
		rounds[i].reference = 0
	}
	return rounds
}
