package oracle

import (
	"cmp"
	"math"
	"slices"
)

// step changes a bound on the units in use. Its moment is a doubled time: 2t is
// the instant t itself, 2t+1 all that follows it up to the next nanosecond.
// Effects that may have happened at an instant count in it, and those that must
// have happened count only after it, for another operation may share the
// instant and have come first.
type step struct {
	at, by int64
}

func instant(t int64) int64 { return 2 * t }
func after(t int64) int64   { return 2*t + 1 }

// curve is a bound on the units in use over time: base, and what steps add up to.
type curve struct {
	base  int64
	steps []step
	down  bool // some step goes down

	at, val []int64 // after build: value from at[i] on
	tree    []int64 // extremes for range queries, made when first needed
	largest bool    // which extreme the tree holds
}

func (c *curve) reset(base int64) {
	c.base = base
	c.steps = c.steps[:0]
	c.down = false
}

// expect makes room for that many steps at once: growing bit by bit would hold
// twice the memory for a while.
func (c *curve) expect(steps int) { c.steps = slices.Grow(c.steps, steps) }

func (c *curve) add(at, by int64) {
	if by == 0 {
		return
	}
	c.down = c.down || by < 0
	c.steps = append(c.steps, step{at, by})
}

// build sorts the steps and adds them up.
func (c *curve) build() {
	byTime := func(a, b step) int { return cmp.Compare(a.at, b.at) }
	if !slices.IsSortedFunc(c.steps, byTime) {
		slices.SortFunc(c.steps, byTime)
	}
	c.clear()
	c.at = slices.Grow(c.at, len(c.steps))
	c.val = slices.Grow(c.val, len(c.steps))
	value := c.base
	for _, change := range c.steps {
		value += change.by
		if last := len(c.at) - 1; last >= 0 && c.at[last] == change.at {
			c.val[last] = value
			continue
		}
		c.set(change.at, value)
	}
}

// clear leaves a curve without values, to be filled by set.
func (c *curve) clear() {
	c.at = c.at[:0]
	c.val = c.val[:0]
	c.tree = c.tree[:0]
}

// set gives a curve its value from a moment on. Moments come in order.
func (c *curve) set(at, value int64) {
	c.at = append(c.at, at)
	c.val = append(c.val, value)
}

// upTo is the number of values whose moment is at or before m.
func (c *curve) upTo(m int64) int {
	n, _ := slices.BinarySearch(c.at, m+1)
	return n
}

func (c *curve) value(n int) int64 {
	if n == 0 {
		return c.base
	}
	return c.val[n-1]
}

// most is the largest value in [from, to].
func (c *curve) most(from, to int64) int64 {
	last := c.upTo(to)
	if !c.down { // it rises
		return c.value(last)
	}
	first := c.upTo(from)
	return max(c.value(first), c.extreme(first, last, true))
}

// least is the smallest value in [from, to].
func (c *curve) least(from, to int64) int64 {
	first := c.upTo(from)
	if !c.down {
		return c.value(first)
	}
	return min(c.value(first), c.extreme(first, c.upTo(to), false))
}

// extreme is the largest or smallest of val[from:to], and of nothing an
// infinity. A bottom-up segment tree answers in a logarithm of the length.
func (c *curve) extreme(from, to int, largest bool) int64 {
	pick := min64
	result := int64(math.MaxInt64)
	if largest {
		pick = max64
		result = math.MinInt64
	}
	if len(c.tree) == 0 || c.largest != largest {
		c.makeTree(largest, pick)
	}
	leaves := len(c.val)
	left := from + leaves
	right := to + leaves
	for left < right {
		if left&1 == 1 {
			result = pick(result, c.tree[left])
			left++
		}
		if right&1 == 1 {
			right--
			result = pick(result, c.tree[right])
		}
		left /= 2
		right /= 2
	}
	return result
}

// makeTree makes the tree of one of the extremes. Node i is the extreme of the nodes
// 2i and 2i+1, and the second half are the values.
func (c *curve) makeTree(largest bool, pick func(a, b int64) int64) {
	leaves := len(c.val)
	c.largest = largest
	c.tree = slices.Grow(c.tree[:0], 2*leaves)[:2*leaves]
	copy(c.tree[leaves:], c.val)
	for i := range slices.Backward(c.tree[:leaves]) { // node 0 is not used
		c.tree[i] = pick(c.tree[2*i], c.tree[2*i+1])
	}
}

func max64(a, b int64) int64 { return max(a, b) }
func min64(a, b int64) int64 { return min(a, b) }
