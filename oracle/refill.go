package oracle

import (
	"cmp"
	"math"
	"slices"

	"github.com/quotabench/quotabench/quota"
)

// refill finds how much is missing from a bucket by what was taken out so far: the
// most, over all moments that a stretch can begin at, of what was taken out since
// then less what has flowed in. Entries come in the order in which they are known,
// and each lies at a place of its own in time. It is a tree over those places, so
// an entry costs a logarithm of their number.
type refill struct {
	flow   quota.Flow
	places []entry // by place; what is put back lies behind what was taken there
	order  []int32 // by the moment at which they are known
	nodes  []node
	leaves int
}

// node sums up a range of places.
type node struct {
	sum  int64       // units
	most quota.Level // of a stretch that begins in the range, with the flow up to its begin
	at   int32       // the place where that one begins
}

// never is less than any amount, and may be added to.
const never = math.MinInt64 / 4

// make begins with all places empty. The list is put in order.
func (t *refill) make(flow quota.Flow, list []entry) {
	t.flow, t.places = flow, list
	slices.SortStableFunc(list, func(a, b entry) int {
		if a.pos != b.pos {
			return cmp.Compare(a.pos, b.pos)
		}
		return cmp.Compare(min(b.units, 0), min(a.units, 0))
	})
	t.order = slices.Grow(t.order[:0], len(list))
	for i := range list {
		t.order = append(t.order, int32(i))
	}
	slices.SortStableFunc(t.order, func(a, b int32) int { return cmp.Compare(list[a].on, list[b].on) })
	t.leaves = 1
	for t.leaves < len(list) {
		t.leaves *= 2
	}
	t.nodes = slices.Grow(t.nodes[:0], 2*t.leaves)[:2*t.leaves]
	for i := range t.nodes {
		t.nodes[i] = node{most: quota.Level{Units: never}}
	}
}

// pending reports whether an entry is to be entered by the moment m.
func (t *refill) pending(m int64) bool { return len(t.order) > 0 && t.places[t.order[0]].on <= m }

// next is the moment of the next entry, which there must be, and peek the entry.
func (t *refill) next() int64  { return t.peek().on }
func (t *refill) peek() *entry { return &t.places[t.order[0]] }

// enter enters the next entry. Stretches that begin at it hold so many units more.
func (t *refill) enter(more int64) *entry {
	k := t.order[0]
	t.order = t.order[1:]
	e := &t.places[k]
	n := node{sum: e.units, most: quota.Level{Units: never}, at: k}
	if e.units > 0 {
		n.most = t.flow.At(e.pos).Plus(e.units + more)
	}
	i := t.leaves + int(k)
	t.nodes[i] = n
	for i /= 2; i > 0; i /= 2 {
		l, r := &t.nodes[2*i], &t.nodes[2*i+1]
		through := l.most.Plus(r.sum)
		t.nodes[i] = node{l.sum + r.sum, r.most, r.at}
		if through.Compare(r.most) > 0 {
			t.nodes[i].most, t.nodes[i].at = through, l.at
		}
	}
	return e
}

// missing is what is missing at the time x, in units rounded up.
func (t *refill) missing(x int64) int64 {
	most := t.nodes[1].most
	if most.Units < never/2 {
		return 0
	}
	return max(0, t.flow.Less(most, t.flow.At(x)).Ceil())
}

// begin is where the stretch begins that misses most.
func (t *refill) begin() int64 { return t.places[t.nodes[1].at].pos }
