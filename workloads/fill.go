package workloads

import (
	"fmt"
	"math"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/seed"
)

// filled is what subjects have used at the start of a stream.
type filled struct {
	limit  int64
	all    int64  // of the subjects that are not full
	full   []bool // by subject; nil if none is
	weight float64
}

// newFilled chooses the full subjects by weights, the most popular first, which
// may be nil if no share was asked for.
func newFilled(params Params, weights []uint64) (filled, error) {
	f := filled{limit: params.Policy.Limit}
	var err error
	f.all, err = fillUnits(params)
	if err != nil {
		return filled{}, err
	}
	share := 0.0
	if weights != nil {
		share = params.Options.Float("over-quota")
	}
	if f.all == f.limit && params.Given("over-quota") && share < 1 {
		return filled{}, fmt.Errorf("a fill of 1 puts every check over quota, which contradicts the over-quota share %v",
			share)
	}
	if share == 0 || f.all == f.limit {
		return f, nil
	}
	f.full = chooseFull(weights, share, newStream(params.Seed, seed.Full))
	var full uint64
	for i, w := range weights {
		if f.full[i] {
			full += w
		}
	}
	f.weight = float64(full) / float64(total(weights))
	if missed := math.Abs(f.weight - share); missed > maxMissed {
		return filled{}, fmt.Errorf("the over-quota share %v cannot be had: the popularity of %d subjects gives %.3g; "+
			"ask for that, for more subjects, or for a more even popularity", share, len(weights), f.weight)
	}
	return f, nil
}

// maxMissed is how far from the share asked for the full subjects may remain. A
// few subjects, or a hot one, cannot give every share.
const maxMissed = 0.05 + 1e-9

// fillUnits is what a fill amounts to. Only a fill of 1 leaves no room at all.
func fillUnits(params Params) (int64, error) {
	fill := params.Options.Float("fill")
	if fill == 0 || fill == 1 {
		return int64(fill) * params.Policy.Limit, nil
	}
	n := min(int64(math.Round(fill*float64(params.Policy.Limit))), params.Policy.Limit-1)
	if n == 0 {
		return 0, fmt.Errorf("a fill of %v is less than a whole unit of the limit of %s", fill,
			format.Units(params.Policy.Limit, params.Policy.Unit))
	}
	return n, nil
}

// Initial implements [Prefilled].
func (f *filled) Initial(subject uint32) int64 {
	if f.full != nil && f.full[subject] {
		return f.limit
	}
	return f.all
}

// notes describe who starts with what; what is what their shares are of.
func (f *filled) notes(what, unit string) []string {
	var notes []string
	switch {
	case f.all == f.limit:
		return []string{fmt.Sprintf("every subject starts with its quota of %s used up", format.Units(f.limit, unit))}
	case f.full != nil:
		count := 0
		for _, full := range f.full {
			if full {
				count++
			}
		}
		notes = append(notes, fmt.Sprintf("%d of %d subjects, with %.1f %% of the %s, start with their quota used up",
			count, len(f.full), 100*f.weight, what))
	}
	if f.all > 0 {
		others := "every subject starts"
		if f.full != nil {
			others = "the others start"
		}
		notes = append(notes, fmt.Sprintf("%s with %d of %s used", others, f.all, format.Units(f.limit, unit)))
	}
	return notes
}

// hottest is the share of subjects, the most popular ones, that stay out of the
// full ones as long as the others suffice: one of them alone can be the whole
// share, and would make a run hinge on a single key.
const hottest = 0.01

// chooseFull picks subjects at random until their weights add up to share of
// all, as closely as weights allow.
func chooseFull(weights []uint64, share float64, order stream) []bool {
	full := make([]bool, len(weights))
	head := int(math.Ceil(hottest * float64(len(weights))))
	tail := total(weights[head:])
	target := uint64(math.Round(share * float64(total(weights))))
	var got uint64
	take := func(i int) {
		full[i] = true
		got += weights[i]
	}
	// What the tail cannot give comes from the least popular of the head.
	for i := head - 1; i >= 0 && got+tail < target; i-- {
		if got+weights[i] <= target {
			take(i)
		}
	}
	perm := make([]int, 0, len(weights)-head)
	for i := head; i < len(weights); i++ {
		perm = append(perm, i)
	}
	for i := range perm {
		j := i + int(below(order.at(uint64(i)), uint64(len(perm)-i)))
		perm[i], perm[j] = perm[j], perm[i]
	}
	for _, i := range perm {
		if got+weights[i] <= target {
			take(i)
		}
	}
	return full
}
