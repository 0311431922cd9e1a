package tiered

import (
	"fmt"
	"sync"
	"testing"

	"github.com/quotabench/quotabench/quota"
)

func TestFilter(t *testing.T) {
	f := newFilter()
	members := make([]string, filterMembers)
	for i := range members {
		members[i] = fmt.Sprintf("member-%d", i)
	}
	if !f.rebuild(members) {
		t.Error("the first members change nothing")
	}
	if f.rebuild(members) {
		t.Error("the same members change something")
	}
	for _, m := range members {
		if !f.test(quota.Subject(m)) {
			t.Fatalf("%s is not found", m)
		}
	}
	// 100,000 lookups at a rate of 0.1 %: 100, with a standard deviation of 10.
	wrong := 0
	for i := range 100_000 {
		if f.test(quota.Subject(fmt.Sprintf("stranger-%d", i))) {
			wrong++
		}
	}
	if wrong < 50 || wrong > 150 {
		t.Errorf("%d of 100,000 strangers are found, want about 100", wrong)
	}
	if f.rebuild(nil); f.test("member-0") {
		t.Error("a member is found after it left")
	}
}

func TestFilterIsSharedByCallers(t *testing.T) {
	f := newFilter()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				f.test("a")
			}
		})
	}
	for range 5 {
		f.rebuild([]string{"a"})
	}
	wg.Wait()
	if !f.test("a") {
		t.Error("a is not found")
	}
}

func TestQueueKeepsOrder(t *testing.T) {
	var q queue
	for i := range int64(5) {
		q.put(writeBack{count: i})
	}
	first := q.take(3)
	q.put(writeBack{count: 5})
	q.putBack(first[1:])
	rest := q.take(10)
	for i, w := range rest {
		if w.count != int64(i)+1 {
			t.Errorf("item %d is %d, want %d", i, w.count, i+1)
		}
	}
	if len(rest) != 5 || q.pending() {
		t.Errorf("%d items, pending %t; want 5 and none", len(rest), q.pending())
	}
}

func BenchmarkFilterTest(b *testing.B) {
	f := newFilter()
	members := make([]string, filterMembers)
	for i := range members {
		members[i] = fmt.Sprintf("member-%d", i)
	}
	f.rebuild(members)
	for name, s := range map[string]quota.Subject{"member": "member-7", "stranger": "stranger-7"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.test(s)
			}
		})
	}
}
