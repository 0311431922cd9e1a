package measure

import (
	"fmt"
	"sync"
	"testing"
	"unsafe"

	"github.com/quotabench/quotabench/harness"
)

// Counters that are written by every worker must not share a cache line with
// what every worker reads.
func TestCountersHaveTheirOwnCacheLine(t *testing.T) {
	const line = 64
	var s subject
	if n := unsafe.Sizeof(s); n%line != 0 {
		t.Errorf("a subject takes %d bytes: the next one begins inside of a line", n)
	}
	if o := unsafe.Offsetof(s.first) + unsafe.Offsetof(s.first.Cell); o%line != 0 {
		t.Errorf("the counters begin at byte %d", o)
	}
	var d drive
	if gap := unsafe.Offsetof(d.next) - unsafe.Offsetof(d.win); gap < line {
		t.Errorf("the request counter is %d bytes behind what workers read", gap)
	}
}

// TestSubjectsTakeMemoryWhenAskedFor: of two million subjects, those next to the ones
// asked about are there, each with its own name, and all callers get the same one.
func TestSubjectsTakeMemoryWhenAskedFor(t *testing.T) {
	const n = 2_000_000
	s := newSubjects(warmStream{}, n, 2*groupLen+1)
	count := func() (there int) {
		for i, one := range s.all() {
			if want := fmt.Sprintf("warm-up-%d", i); string(one.name) != want {
				t.Fatalf("subject %d is called %q", i, one.name)
			}
			there++
		}
		return there
	}
	if got := count(); got != 3*groupLen {
		t.Errorf("%d subjects at first, want %d", got, 3*groupLen)
	}
	const last = n - 1
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { s.at(last).cell(0).Fill(1) })
	}
	wg.Wait()
	if got := s.at(last).cell(0).Tally().Initial; got != 4 {
		t.Errorf("four callers filled %d units into one subject", got)
	}
	if got := count(); got != 3*groupLen+n%groupLen {
		t.Errorf("%d subjects afterwards, want %d", got, 3*groupLen+n%groupLen)
	}
}

// TestOnlyWhoIsAskedIsFilled: filling takes requests, so subjects which the pass
// cannot ask about are left alone. Those it asks about are filled, by several callers
// at a time.
func TestOnlyWhoIsAskedIsFilled(t *testing.T) {
	p := &planted{}
	r := measureOne(t, p, "steady", func(c *Config) {
		c.Stream.Options = map[string]string{"subjects": "1000", "fill": "0.5", "over-quota": "0"}
		c.Load = harness.OpenAt(1e6)
		c.Requests = 300
		c.Workers = 8
		c.Policy.Limit = 10
	})
	filled := 0
	for _, used := range p.used {
		if used >= 5 {
			filled++
		}
	}
	if r.Issued != 300 || filled < 100 || filled > 300 {
		t.Errorf("%d requests, and %d of 1000 subjects were filled", r.Issued, filled)
	}
	if r.Drift.Units != 0 || r.Leak.Units != 0 || r.FalseRejects.Count != 0 {
		t.Errorf("drift %+v, leak %+v, false rejects %+v", r.Drift, r.Leak, r.FalseRejects)
	}
}
