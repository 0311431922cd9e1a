package workloads

import (
	"fmt"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
)

func init() {
	Register(Meta{
		Name: "steady",
		Doc: "requests arrive at a set rate for many subjects, a few of them very popular, and a share of the checks " +
			"is over quota",
		Loop:    Open,
		Rate:    1_000,
		Options: crowdOptions(10_000, "zipf:1", 0.05),
		Make:    newSteady,
	})
	Register(Meta{
		Name:    "abuse",
		Doc:     "as steady, but nearly all checks are over quota",
		Loop:    Open,
		Rate:    1_000,
		Options: crowdOptions(10_000, "zipf:1", 0.95),
		Make:    newSteady,
	})
	Register(Meta{
		Name:     "boundary",
		Doc:      "all workers ask a few subjects for more than their limits while a window ends and the next one begins",
		Loop:     Closed,
		Kinds:    []quota.Kind{quota.CalendarMonth, quota.CalendarDay, quota.CalendarHour, quota.Fixed},
		Options:  crowdOptions(20, "uniform", 0),
		Boundary: true,
		Crosses:  true,
		Make:     newBoundary,
	})
}

func newSteady(params Params) (Stream, Info, error) {
	crowd, weights, notes, err := newCrowd(params)
	if err != nil {
		return nil, Info{}, err
	}
	if n := crowd.usedUp(params, weights); n != "" {
		notes = append(notes, n)
	}
	return crowd, Info{Loop: Open, Notes: notes}, nil
}

// usedUp says which share of the checks to expect over quota when the requests
// are known, because popular subjects use up a small limit within the run.
func (c *crowd) usedUp(params Params, weights []uint64) string {
	if params.Requests == 0 || c.all == c.limit {
		return ""
	}
	sum := float64(total(weights))
	room := float64(c.limit-c.all) / c.mean()
	over := c.weight
	for i, w := range weights {
		full := c.full != nil && c.full[i]
		if checks := float64(params.Requests) * float64(w) / sum; !full && checks > room {
			over += (checks - room) / float64(params.Requests)
		}
	}
	if over <= c.weight+0.005 {
		return ""
	}
	return fmt.Sprintf("popular subjects use up their limit of %s within the run: expect about %.0f %% of %d checks "+
		"over quota",
		format.Units(c.limit, params.Policy.Unit), 100*over, params.Requests)
}

// newBoundary notes how long windows have to be, because nothing is shown if
// no limit is reached on either side of the boundary.
func newBoundary(params Params) (Stream, Info, error) {
	crowd, weights, notes, err := newCrowd(params)
	if err != nil {
		return nil, Info{}, err
	}
	needed := float64(crowd.limit) / crowd.mean() * float64(total(weights)) / float64(weights[0])
	notes = append(notes, fmt.Sprintf("a window takes about %.0f requests to use up the limit of its most popular subject",
		needed))
	return crowd, Info{Loop: Closed, Notes: notes}, nil
}
