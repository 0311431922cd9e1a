package oracle

import (
	"cmp"
	"math"
	"slices"

	"github.com/quotabench/quotabench/quota"
)

// bucket judges a bucket that holds as many units as the limit and is refilled at
// an even rate: between any two moments no more may be taken out than it holds and
// than flows in meanwhile.
//
// The certain leak rests on what lies in a stretch of time for certain, because it
// was called and answered there. The excesses of stretches that do not overlap add
// up, and the choice with the largest sum is taken. With refills that are not
// rounded this is the fewest units; rounded, it is a lower bound, for each stretch
// by itself may be in order and still not all of them together.
//
// What may be missing from the bucket at a moment is most if every request took
// effect as late as it can have done, and least if it did so as early as it can.
// What commits used beyond their reservations may be taken out at any moment from the
// take to the commit.
// What is given back was never taken: the bucket is then as full as it would be
// without that take.
type bucket struct {
	*judge
	flow    quota.Flow
	verdict windowVerdict

	most, least curve // what is missing, by the calls and by the replies of all takes
	early       curve // with every admission at its call, by the calls of all takes
	tree        refill
	replies     []int64
	points      []int64
}

// entry is something that was taken out at a moment, or with negative units put
// back as if it had never been taken then.
type entry struct {
	from  int64 // doubled moment from which it counts, wherever it lies
	on    int64 // doubled moment from which its place is known
	pos   int64 // its place
	units int64
}

func (j *judge) bucket() {
	bucket := &j.buckets
	bucket.judge, bucket.flow = j, j.cfg.Window.Flow()
	bucket.verdict = windowVerdict{Subject: j.id, GaveBack: len(j.gives) > 0}
	var total int64
	failed := false
	for _, event := range j.takes {
		total += event.Units
		failed = failed || !event.answered()
		if event.admitted() {
			bucket.verdict.Admitted += event.Units
		}
	}
	j.out.MaxOffered = max(j.out.MaxOffered, total)

	leaks, worst := bucket.leak(bucket.surely((*Event).admitted, true), true)
	bucket.mostMissing(false)
	bucket.rejections()
	bucket.explain()
	for _, drawn := range leaks {
		bucket.verdict.Leak += drawn.excess
		j.blame(bucket.requests(drawn))
	}
	bucket.verdict.sure = sure{worst, bucket.verdict.FalseRejectUnits, bucket.verdict.FalseRejectUnitsPossible}
	if slices.ContainsFunc(j.gives, func(event *Event) bool { return event.Kind == Expire }) {
		bucket.mostMissing(true)
	}
	over := int64(0)
	if n := len(bucket.most.val); n > 0 {
		over = bucket.most.extreme(0, n, true) - j.limit
	}
	bucket.verdict.LeakPossible = max(worst, min(over, bucket.verdict.Admitted))
	if bucket.verdict.LeakPossible > 0 {
		j.out.LeakPossible += max(bucket.verdict.Leak, min(bucket.possible(), bucket.verdict.Admitted))
	}
	var asked []drawn
	switch {
	case bucket.verdict.GaveBack:
		j.out.OverOffered += j.overOffered(bucket.verdict.Leak)
		asked, _ = bucket.leak(bucket.surely((*Event).answered, false), false)
	default:
		asked, _ = bucket.leak(bucket.surely(func(*Event) bool { return true }, false), false)
		for _, drawn := range asked {
			j.out.OverOffered += drawn.excess
		}
		if failed {
			asked, _ = bucket.leak(bucket.surely((*Event).answered, false), false)
		}
	}
	for i := range max(len(asked), len(leaks)) {
		leak := int64(0)
		if i < len(leaks) {
			leak = leaks[i].excess
		}
		j.crossed(leak)
	}
	j.out.Windows = append(j.out.Windows, bucket.verdict)
}

// surely lists what certainly was taken out of the takes that count, each as early
// as it can have been. What subjects had in use at the start is no leak: it is no
// more than the bucket holds, and is left out if something was taken before it.
func (b *bucket) surely(counts func(*Event) bool, giveBack bool) []entry {
	list := make([]entry, 0, len(b.takes)+len(b.gives)+1)
	if b.initial > 0 && b.takes[0].Call >= 0 {
		list = append(list, entry{units: min(b.initial, b.limit)})
	}
	for _, event := range b.takes {
		if counts(event) && event.Units > 0 {
			list = append(list, entry{on: after(event.Reply), pos: event.Call, units: event.Units})
		}
	}
	if !giveBack {
		return list
	}
	for _, event := range b.gives {
		if event.Units > 0 {
			list = append(list, entry{on: b.freed(event), pos: b.names.taken(event).call, units: -event.Units})
		}
	}
	return list
}

// possibly lists what may have been taken out, each as late as it can have been.
func (b *bucket) possibly(expired bool) []entry {
	list := make([]entry, 0, len(b.takes)+len(b.gives)+1)
	add := func(from, pos, units int64) {
		list = append(list, entry{from: instant(from), on: max(instant(from), after(pos)), pos: pos, units: units})
	}
	if b.initial > 0 {
		add(0, 0, b.initial)
	}
	for _, event := range b.takes {
		if event.admitted() && event.Units > 0 {
			add(event.Call, event.Reply, event.Units)
		}
	}
	for _, event := range b.gives {
		switch {
		case event.Units < 0: // a commit of more than was reserved
			add(event.Call, event.Reply, -event.Units)
		case event.Units > 0 && event.Outcome != Failed && b.names.named(event) && (expired || event.Kind != Expire):
			list = append(list, entry{from: after(event.Reply), on: after(event.Reply), pos: event.TakeReply,
				units: -event.Units})
		}
	}
	return list
}

// mostMissing fills the curve of what may be missing from the bucket. Between two
// of its moments it falls.
func (b *bucket) mostMissing(expired bool) {
	list := b.possibly(expired)
	b.points = b.points[:0]
	for _, event := range b.takes {
		b.points = append(b.points, event.Call)
	}
	for _, entry := range list {
		if entry.from == instant(entry.from>>1) && entry.units > 0 {
			b.points = append(b.points, entry.from>>1)
		}
	}
	slices.Sort(b.points)
	b.points = slices.Compact(b.points)
	starts := slices.Clone(list)
	slices.SortFunc(starts, func(x, y entry) int { return cmp.Compare(x.from, y.from) })
	refill := &b.tree
	refill.make(b.flow, list)
	b.most.reset(0)
	b.most.at = b.most.at[:0]
	b.most.val = b.most.val[:0]
	b.most.tree = b.most.tree[:0]
	var flying int64
	for _, x := range b.points {
		for len(starts) > 0 && starts[0].from <= instant(x) {
			if starts[0].from < starts[0].on {
				flying += starts[0].units
			}
			starts = starts[1:]
		}
		for refill.pending(instant(x)) {
			if entry := refill.enter(0); entry.from < entry.on {
				flying -= entry.units
			}
		}
		b.most.at = append(b.most.at, instant(x))
		b.most.val = append(b.most.val, refill.missing(x)+flying)
	}
}

// rejections checks every rejection against what may have been missing, and what
// must have been, while it lasted.
func (b *bucket) rejections() {
	for _, event := range b.takes {
		if !event.rejected() {
			continue
		}
		from := instant(event.Call)
		to := instant(event.Reply)
		most := b.most.extreme(b.most.upTo(from-1), b.most.upTo(to), true)
		least := b.least.extreme(b.least.upTo(from-1), b.least.upTo(to), false)
		b.refused(&b.verdict, event, b.limit-most, b.limit-least)
	}
}

// explain looks for one order that explains every rejection: it puts each
// admission at its call.
func (b *bucket) explain() {
	if b.verdict.GaveBack || b.out.unexplained {
		return
	}
	b.early.at = b.early.at[:0]
	b.early.val = b.early.val[:0]
	b.early.tree = b.early.tree[:0]
	var full quota.Level // when the bucket is full again, as an amount of the flow
	begun := false
	put := func(units, at int64) {
		if now := b.flow.At(at); !begun || now.Compare(full) > 0 {
			full = now
		}
		begun = true
		full = full.Plus(units)
	}
	initial := b.initial
	for _, event := range b.takes {
		if initial > 0 && event.Call >= 0 {
			put(initial, 0)
			initial = 0
		}
		if event.admitted() {
			put(event.Units, event.Call)
		}
		used := int64(0)
		if begun {
			used = max(0, b.flow.Less(full, b.flow.At(event.Call)).Ceil())
		}
		b.early.at = append(b.early.at, instant(event.Call))
		b.early.val = append(b.early.val, used)
	}
	for _, event := range b.takes {
		if event.rejected() && b.early.extreme(b.early.upTo(instant(event.Call)-1), b.early.upTo(instant(event.Reply)),
			true)+event.least() <= b.limit {
			b.out.unexplained = true
			return
		}
	}
}

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
	t.flow = flow
	t.places = list
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
		l := &t.nodes[2*i]
		r := &t.nodes[2*i+1]
		through := l.most.Plus(r.sum)
		t.nodes[i] = node{l.sum + r.sum, r.most, r.at}
		if through.Compare(r.most) > 0 {
			t.nodes[i].most = through
			t.nodes[i].at = l.at
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
