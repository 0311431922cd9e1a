package stacks

import (
	"slices"
	"strings"
	"sync"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

type blocker struct{ mu sync.Mutex }

func (b *blocker) wait() { b.mu.Lock() }

func outer(b *blocker) { b.wait() }

func TestWhereAGoroutineStands(t *testing.T) {
	var b blocker
	b.mu.Lock()
	ids := make(chan uint64)
	var ended sync.WaitGroup
	ended.Go(func() {
		ids <- Current()
		outer(&b)
	})
	id := <-ids
	var g Goroutine
	for g.State != "sync.Mutex.Lock" { // until it has come there
		g = All()[id]
	}
	b.mu.Unlock()
	ended.Wait()
	calls, ok := g.Called("stacks.outer")
	if !ok || calls[len(calls)-1].Func != "github.com/quotabench/quotabench/internal/kit/stacks.(*blocker).wait" {
		t.Fatalf("%v %+v of\n%s", ok, calls, g.Text)
	}
	if where := g.Where(calls); !strings.HasPrefix(where, "stacks.(*blocker).wait (stacks_test.go:") ||
		!strings.HasSuffix(where, ") [sync.Mutex.Lock]") {
		t.Errorf("where: %s", where)
	}
	if _, ok := g.Called("stacks.inner"); ok {
		t.Error("a function that was not called was found")
	}
	if Current() == id || Current() == 0 {
		t.Errorf("number %d", Current())
	}
}

func TestTextOfStacks(t *testing.T) {
	text := `goroutine 7 [chan receive, 2 minutes]:
sync.(*Mutex).Lock(...)
	/go/src/sync/mutex.go:46
example.com/lim.(*Limiter[...]).Take(0xc000, {0x1, 0x2})
	/home/u/lim/limiter.go:12 +0x1d
created by example.com/x.run in goroutine 1
	/home/u/x.go:9 +0x2

goroutine 12 [running]:
main.main()
	/home/u/main.go:3 +0x2`
	all := read(text)
	g := all[7]
	if len(all) != 2 || g.Parent != 1 || all[12].Parent != 0 || g.State != "chan receive" || all[12].State != "running" {
		t.Fatalf("%+v", all)
	}
	frames := g.Frames()
	if len(frames) != 2 || frames[1] != (Frame{"example.com/lim.(*Limiter[...]).Take", "limiter.go:12"}) {
		t.Errorf("%+v", frames)
	}
	if where := g.Where(frames); where != "lim.(*Limiter[...]).Take (limiter.go:12) [chan receive]" {
		t.Error(where)
	}
	if where := g.Where(frames[:1]); where != "sync.(*Mutex).Lock (mutex.go:46) [chan receive]" {
		t.Error(where)
	}
}

// TestCurrent: the number that is read is the one that the runtime prints, in any goroutine.
func TestCurrent(t *testing.T) {
	var group sync.WaitGroup
	seen := make([]uint64, 100)
	for i := range seen {
		group.Go(func() {
			seen[i] = Current()
			if want := printed(); seen[i] != want {
				t.Errorf("goroutine %d, and the runtime says %d", seen[i], want)
			}
		})
	}
	group.Wait()
	slices.Sort(seen)
	if len(slices.Compact(seen)) != 100 {
		t.Error("two goroutines have one number")
	}
	if !readable {
		t.Error("package goid does not know this version of Go: searches of libraries take twice as long")
	}
}
