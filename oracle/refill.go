package oracle

import (
	"cmp"
	"math"
	"slices"

	"github.com/quotabench/quotabench/quota"
)

// meter is a bucket of which the order of all takes is known, in the form of the
// virtual scheduling algorithm (generic cell rate algorithm, ITU-T I.371): its state
// is the inflow at which the bucket is full again.
type meter struct {
	flow  quota.Flow
	full  quota.Level
	begun bool // units were taken
}

// take takes units out at a moment. Moments come in order.
func (m *meter) take(units, at int64) {
	inflow := m.flow.At(at)
	if !m.begun || inflow.Compare(m.full) > 0 {
		m.full = inflow
	}
	m.begun = true
	m.full = m.full.Plus(units)
}

// missing is how many units are missing at a moment, rounded up.
func (m *meter) missing(at int64) int64 {
	if !m.begun {
		return 0
	}
	return max(0, m.flow.Less(m.full, m.flow.At(at)).Ceil())
}

// refill finds how many units are missing from a bucket while the order of the takes
// is not known: entries come in the order in which they become known, and each lies
// at a place of its own in time.
//
// The missing units at a moment x are the largest value of
//
//	taken out in [s, x] - flowed in from s to x
//
// over all moments s before x. That is the condition by which traffic conforms to a
// token bucket (Le Boudec and Thiran, Network Calculus, section 1.2). Apart from the
// inflow at x, it is the largest sum of a suffix of the places. A segment tree over
// the places holds it, so an entry costs a logarithm of their number.
type refill struct {
	flow   quota.Flow
	places []entry // by place; at one place, units put back lie behind units taken
	order  []int32 // places that are not entered yet, by the moment at which they are known
	nodes  []node
	leaves int
}

// node sums up a range of places.
type node struct {
	units int64
	// suffix is the largest sum of a suffix of the range and of the inflow up to
	// where it begins, which is the place begin.
	suffix quota.Level
	begin  int32
}

// never is less than any amount, and may be added to.
const never = math.MinInt64 / 4

// reset begins with all places empty. The list is put in order.
func (r *refill) reset(flow quota.Flow, list []entry) {
	r.flow = flow
	r.places = list
	slices.SortStableFunc(list, func(a, b entry) int {
		if a.place != b.place {
			return cmp.Compare(a.place, b.place)
		}
		return cmp.Compare(min(b.units, 0), min(a.units, 0))
	})
	r.order = slices.Grow(r.order[:0], len(list))
	for i := range list {
		r.order = append(r.order, int32(i))
	}
	slices.SortStableFunc(r.order, func(a, b int32) int { return cmp.Compare(list[a].known, list[b].known) })
	r.leaves = 1
	for r.leaves < len(list) {
		r.leaves *= 2
	}
	r.nodes = slices.Grow(r.nodes[:0], 2*r.leaves)[:2*r.leaves]
	for i := range r.nodes {
		r.nodes[i] = node{suffix: quota.Level{Units: never}}
	}
}

// pending reports whether an entry is known by a moment and not entered yet.
func (r *refill) pending(moment int64) bool {
	return len(r.order) > 0 && r.places[r.order[0]].known <= moment
}

// next is the entry to be entered next, which there must be.
func (r *refill) next() *entry { return &r.places[r.order[0]] }

// enter enters the next entry. Stretches that begin at it hold so many units more.
func (r *refill) enter(more int64) *entry {
	place := r.order[0]
	r.order = r.order[1:]
	entered := &r.places[place]
	leaf := node{units: entered.units, suffix: quota.Level{Units: never}, begin: place}
	if entered.units > 0 {
		leaf.suffix = r.flow.At(entered.place).Plus(entered.units + more)
	}
	at := r.leaves + int(place)
	r.nodes[at] = leaf
	for at /= 2; at > 0; at /= 2 {
		r.combine(at)
	}
	return entered
}

// combine makes a node of its two halves. A suffix of the range begins in the right
// half, or in the left one and holds all of the right one.
func (r *refill) combine(at int) {
	left := &r.nodes[2*at]
	right := &r.nodes[2*at+1]
	through := left.suffix.Plus(right.units)
	combined := &r.nodes[at]
	combined.units = left.units + right.units
	if through.Compare(right.suffix) > 0 {
		combined.suffix = through
		combined.begin = left.begin
	} else {
		combined.suffix = right.suffix
		combined.begin = right.begin
	}
}

// missing is how many units are missing at a moment, rounded up.
func (r *refill) missing(at int64) int64 {
	suffix := r.nodes[1].suffix
	if suffix.Units < never/2 { // nothing was taken
		return 0
	}
	return max(0, r.flow.Less(suffix, r.flow.At(at)).Ceil())
}

// begin is the first moment of the stretch that misses most.
func (r *refill) begin() int64 { return r.places[r.nodes[1].begin].place }
