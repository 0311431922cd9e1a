package tiered

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
)

func members(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("member-%d", i)
	}
	return out
}

const strangers = 20_000

// wrong counts how many strangers are found.
func wrong(f *filter) (n int) {
	for i := range strangers {
		if f.test(quota.Subject(fmt.Sprintf("stranger-%d", i))) {
			n++
		}
	}
	return n
}

// TestFilter: up to its capacity a fixed filter keeps the rate that it was made
// for, and beyond that loses it; a scalable one adds a layer and keeps it.
func TestFilter(t *testing.T) {
	testenv.Sequential(t)
	type size struct {
		grows    bool
		members  int
		layers   int
		min, max int // strangers found
	}
	all := []size{
		// With 200,000 members three of four bits are set: 0.75^10 is 5.6 %.
		{false, 2 * filterMembers, 1, 1_000, 1_300},
		// The second layer is not full yet.
		{true, 2 * filterMembers, 2, 0, 30},
		// 20 are expected, with a standard deviation of 4.5.
		{false, filterMembers, 1, 4, 40},
		// The first layer's share of the rate is a tenth.
		{true, filterMembers, 1, 0, 10},
	}
	for _, c := range testenv.Pick(all[:2], all) {
		t.Run(fmt.Sprintf("grows=%t/%d", c.grows, c.members), func(t *testing.T) {
			f := newFilter(shape{c.grows, FilterMembers(0)})
			list := members(c.members)
			if !f.rebuild(list) {
				t.Error("the first members change nothing")
			}
			slices.Reverse(list)
			if f.rebuild(list) {
				t.Error("the same members in another order change something")
			}
			for _, m := range list {
				if !f.test(quota.Subject(m)) {
					t.Fatalf("%s is not found", m)
				}
			}
			if n := len(f.bits.list); n != c.layers {
				t.Errorf("%d layers, want %d", n, c.layers)
			}
			if n := wrong(f); n < c.min || n > c.max {
				t.Errorf("%d of %d strangers are found, want %d to %d", n, strangers, c.min, c.max)
			}
			f.rebuild(nil)
			if f.test("member-0") {
				t.Error("a member is found after it left")
			}
		})
	}
}

// TestLayers: capacities grow by four, rates shrink so that their sum stays below
// the filter's however many layers follow, and a member takes room once.
func TestLayers(t *testing.T) {
	var sum float64
	for n, want := range map[int]uint{0: 100_000, 1: 400_000, 2: 1_600_000} {
		if members, _ := layerShape(filterMembers, n); members != want {
			t.Errorf("layer %d is made for %d members, want %d", n, members, want)
		}
	}
	for n := range 200 {
		_, rate := layerShape(filterMembers, n)
		sum += rate
	}
	if sum > FilterRate || sum < 0.99*FilterRate {
		t.Errorf("the rates of 200 layers add up to %g, want just below %g", sum, FilterRate)
	}
	l := newLayers(shape{true, FilterMembers(0)}, 0)
	l.add("a")
	l.add("a")
	if l.room != filterMembers-1 {
		t.Errorf("room for %d more, want one less than %d", l.room, filterMembers)
	}
}

// TestShape: the record's shape unless the run says that it has fewer subjects,
// and never so small that the few get in each other's way.
func TestShape(t *testing.T) {
	for subjects, want := range map[int]uint{0: filterMembers, 1: fewestMembers, 5_000: 5_000, 1_000_000: filterMembers} {
		if got := FilterMembers(subjects); got != want {
			t.Errorf("for %d subjects it is made for %d members, want %d", subjects, got, want)
		}
	}
	f := newFilter(shape{false, FilterMembers(1)})
	f.rebuild(members(fewestMembers))
	if wrong(f) > 60 { // 20 are expected
		t.Errorf("%d of %d strangers are found in a small filter", wrong(f), strangers)
	}
}

func TestFilterIsSharedByCallers(t *testing.T) {
	for _, grows := range []bool{false, true} {
		f := newFilter(shape{grows, FilterMembers(0)})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 200 {
					f.test("a")
				}
			})
		}
		wg.Go(func() {
			for range 200 {
				f.add("b")
			}
		})
		for range 5 {
			f.rebuild([]string{"a"})
		}
		wg.Wait()
		f.add("c")
		if !f.test("a") || !f.test("c") {
			t.Error("a or c is not found")
		}
		if !f.rebuild([]string{"a"}) || f.test("c") {
			t.Error("c was added to this instance alone, and a rebuild does not drop it and say so")
		}
	}
}

func TestQueueKeepsOrder(t *testing.T) {
	var q queue
	for i := range int64(5) {
		q.put(writeBack{count: i})
	}
	first := q.take(3, 0)
	q.put(writeBack{count: 5})
	q.putBack(first[1:])
	rest := q.take(10, 0)
	for i, w := range rest {
		if w.count != int64(i)+1 {
			t.Errorf("item %d is %d, want %d", i, w.count, i+1)
		}
	}
	if len(rest) != 5 || q.pending() {
		t.Errorf("%d items, pending %t; want 5 and none", len(rest), q.pending())
	}
	a := &schemaUses[0]
	b := &schemaUses[1]
	for _, u := range []*use{a, a, b, a} {
		q.put(writeBack{use: u})
	}
	for i, want := range []int{2, 1, 1} {
		if n := len(q.take(10, 0)); n != want {
			t.Errorf("run %d of one kind has %d items, want %d", i, n, want)
		}
	}
}
