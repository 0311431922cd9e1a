package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// Search looks for the highest rate of an open loop at which a condition holds, for each
// strategy by itself: it brackets the rate, and halves the bracket on a scale of factors.
// Every rate is measured in the rounds of the configuration. One that does not hold is
// measured in as many rounds again before it counts, and so is the one that holds in
// the end. What was measured is the answer: [results.File.SweepSeries] has all rates.
type Search struct {
	// Config of a measurement; its rate is not used, and its loop must not be closed.
	Config measure.Config
	// Low and High bound the rates that are tried, in requests per second. If both are
	// 0 the search begins at [DefaultLow], doubles the rate for as long as it holds, and
	// ends at [DefaultHigh].
	Low, High float64
	// Holds says whether the condition does, over the rounds of one rate, which the file
	// has. What is not known, since its timings do not count, does not hold.
	Holds func(*results.File, *results.Summary) bool
	// Within is how close the edge is narrowed down: the rate that does not hold is at
	// most this share above the one that does. Default 0.05.
	Within float64
}

// The bounds of a search that is given none, in requests per second.
const (
	DefaultLow  = 500
	DefaultHigh = 1_000_000
)

// Measure searches, one strategy after the other. What [measure.Measure] says of ctx and
// of errors holds here too.
func (s *Search) Measure(ctx context.Context) (*measure.Report, error) {
	bounds, err := s.Points()
	if err != nil {
		return nil, err
	}
	own := *s
	s = &own
	s.Config.Rounds = bounds[0].Rounds
	out := new(measure.Report)
	selected, _ := s.Config.Split()
	if observer := s.Config.Observer; observer != nil {
		observer.Begin(len(selected) * s.Config.Rounds * s.steps())
		s.Config.Observer = begun{observer}
	}
	for _, sel := range selected {
		h := &hunt{Search: *s, runs: map[float64][]results.Run{}, out: out}
		h.Config.Strategies = []strategies.Selection{sel}
		if err := h.search(ctx); err != nil {
			return nil, err
		}
		if out.Interrupted {
			break
		}
	}
	return out, nil
}

// complete fills in the defaults.
func (s *Search) complete() error {
	if s.Low == 0 && s.High == 0 {
		s.Low = DefaultLow
		s.High = DefaultHigh
	}
	s.Within = cmp.Or(s.Within, 0.05)
	switch {
	case !(s.Low > 0 && s.High > s.Low):
		return fmt.Errorf("from %g to %g requests per second there is nothing to search: give a lower and a higher rate",
			s.Low, s.High)
	case s.Holds == nil, !(s.Within > 0 && s.Within <= 1):
		return errors.New("a search needs a condition, and narrows its edge down to a share of at most 1")
	}
	return nil
}

// Points are the configurations at both bounds, without measuring anything. An error
// says what is wrong with the search.
func (s *Search) Points() ([]measure.Config, error) {
	if err := s.complete(); err != nil {
		return nil, err
	}
	return Points(s.Config, s.Sweep().Parameters)
}

// Sweep is the search for its record.
func (s *Search) Sweep() results.Sweep {
	return results.Sweep{Parameters: []results.Swept{{Name: Rate, Values: []string{rateText(s.Low), rateText(s.High)}}},
		Search: true}
}

// steps is how many times a rate is measured at most, about: to double it, to halve the
// bracket with what fails measured twice, and at the edge.
func (s *Search) steps() int {
	halvings := math.Ceil(math.Log2(math.Max(math.Log(2)/math.Log1p(s.Within), 1)))
	return int(math.Ceil(math.Log2(s.High/s.Low))+2*halvings) + 3
}

// begun is an observer that was told of the beginning already.
type begun struct{ measure.Observer }

// Begin leaves out what each rate has to say.
func (begun) Begin(int) {}

// hunt is the search of one strategy.
type hunt struct {
	Search
	runs map[float64][]results.Run // by rate
	out  *measure.Report
}

// search narrows the edge down. low holds and high does not, as far as they are known.
func (h *hunt) search(ctx context.Context) error {
	low, high, err := h.bracket(ctx)
	for err == nil && low > 0 && high > 0 && !h.out.Interrupted {
		if mid := rounded(math.Sqrt(low * high)); high/low > 1+h.Within && mid > low && mid < high {
			var ok bool
			ok, err = h.holds(ctx, mid)
			if ok {
				low = mid
			} else {
				high = mid
			}
			continue
		}
		// It narrowed: what held once is measured again.
		var ok bool
		ok, err = h.again(ctx, low)
		if ok || err != nil {
			break
		}
		high = low
		low = h.below(low)
	}
	return err
}

// bracket finds a rate that holds and one that does not; 0 stands for none.
func (h *hunt) bracket(ctx context.Context) (low, high float64, err error) {
	if ok, err := h.holds(ctx, h.Low); !ok || err != nil {
		return 0, h.Low, err
	}
	low = h.Low
	for rate := low; rate < h.High && !h.out.Interrupted; low = rate {
		rate = min(h.High, rounded(2*rate))
		ok, err := h.holds(ctx, rate)
		if err != nil {
			return 0, 0, err
		}
		if !ok {
			return low, rate, nil
		}
	}
	return low, 0, nil
}

// holds measures a rate, and once more before it says no.
func (h *hunt) holds(ctx context.Context, rate float64) (bool, error) {
	if err := h.measure(ctx, rate); err != nil || h.out.Interrupted {
		return false, err
	}
	if h.verdict(rate) {
		return true, nil
	}
	return h.again(ctx, rate)
}

// again measures a rate that was measured once, unless it was measured twice.
func (h *hunt) again(ctx context.Context, rate float64) (bool, error) {
	if len(h.runs[rate]) <= h.Config.Rounds {
		if err := h.measure(ctx, rate); err != nil || h.out.Interrupted {
			return false, err
		}
	}
	return h.verdict(rate), nil
}

func (h *hunt) verdict(rate float64) bool {
	file := results.File{Kind: results.Measured, Runs: h.runs[rate]}
	all := results.Summarise(file.Runs)
	return len(all) == 1 && h.Holds(&file, &all[0])
}

func (h *hunt) measure(ctx context.Context, rate float64) error {
	points, err := Points(h.Config, []results.Swept{{Name: Rate, Values: []string{rateText(rate)}}})
	if err != nil {
		return err
	}
	points[0].Earlier = len(h.runs[rate])
	reports, err := measure.Points(ctx, points)
	if err != nil {
		if ctx.Err() != nil && len(h.out.Runs) > 0 {
			h.out.Interrupted = true
			return nil
		}
		return err
	}
	h.runs[rate] = append(h.runs[rate], reports[0].Runs...)
	add(h.out, reports[0])
	if len(reports[0].Runs) == 0 { // its store is gone
		h.out.Interrupted = h.out.Interrupted || ctx.Err() != nil
	}
	return nil
}

// below is the highest rate under another one that held; 0 if none did.
func (h *hunt) below(rate float64) (best float64) {
	for r := range h.runs {
		if r < rate && r > best && h.verdict(r) {
			best = r
		}
	}
	return best
}

// rounded is a rate with three digits.
func rounded(rate float64) float64 {
	value, _ := strconv.ParseFloat(strconv.FormatFloat(rate, 'g', 3, 64), 64)
	return value
}

func rateText(rate float64) string { return strconv.FormatFloat(rate, 'f', -1, 64) }
