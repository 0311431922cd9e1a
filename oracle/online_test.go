package oracle

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/quota"
)

func TestSizes(t *testing.T) {
	if n := unsafe.Sizeof(Event{}); n != 48 {
		t.Errorf("an event takes %d bytes, not 48", n)
	}
	if n := unsafe.Sizeof(compact{}); n != 32 {
		t.Errorf("a take takes %d bytes, not 32", n)
	}
	if n := unsafe.Sizeof(Cell{}); n != 64 {
		t.Errorf("a cell takes %d bytes, not one cache line", n)
	}
	if n := unsafe.Sizeof(recorder{}); n != 64 {
		t.Errorf("a recorder takes %d bytes, not one cache line", n)
	}
}

// online drives cells through a history as a harness would, in some real order
// of calls and replies that has these timestamps.
func online(r *rand.Rand, ops []operation, limit, initial int64, windows bool) map[Key]*Cell {
	type moment struct {
		at    int64
		op    int
		reply bool
		tie   uint64
	}
	index := func(t int64) int64 {
		if !windows {
			return 0
		}
		return tumblingConfig(1, 0).Window.At(tumblingConfig(1, 0).Epoch.Add(0)).Index + windowOf(t)
	}
	var moments []moment
	for i, o := range ops {
		// A request's own call comes before its reply, and its reply before its refund.
		tie := r.Uint64N(1 << 40)
		if o.of >= 0 {
			tie += 1 << 50
		}
		moments = append(moments, moment{o.Call, i, false, tie}, moment{o.Reply, i, true, tie + 1<<41})
	}
	slices.SortFunc(moments, func(a, b moment) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.tie, b.tie))
	})
	cells := map[Key]*Cell{}
	cell := func(w int64) *Cell {
		k := Key{0, w}
		if cells[k] == nil {
			cells[k] = new(Cell)
			if w == index(0) {
				cells[k].Fill(initial)
			}
		}
		return cells[k]
	}
	marks := make([]int64, len(ops))
	for _, m := range moments {
		o := &ops[m.op]
		if o.Kind != Take {
			if m.reply && o.Outcome == Admitted {
				cell(index(ops[o.of].Call)).GiveBack(o.Units)
			}
			continue
		}
		c := cell(index(o.Call))
		if !m.reply {
			marks[m.op] = c.Begin(o.Units)
			continue
		}
		for w := index(o.Call); w <= index(o.Reply) && index(o.Call) != index(o.Reply); w++ {
			cell(w).Crossed()
		}
		switch o.Outcome {
		case Admitted:
			c.Admit(o.Units)
		case Failed:
			c.Fail(o.Units)
		default:
			c.Reject(o.Units, marks[m.op], limit)
		}
	}
	return cells
}

// TestOnlineAgrees: whatever the cells say, the exact verdict says too.
func TestOnlineAgrees(t *testing.T) {
	r := seeded(5)
	seen := tally{}
	for i := range 8000 {
		windows := i%2 == 0
		g := generator{Rand: r, span: 40, length: 6, cost: 3, refunds: r.IntN(2) == 0, failedToo: true, gap: 1}
		ops := g.history(2 + r.IntN(8))
		for k := range ops {
			if ops[k].Kind == Take && ops[k].Outcome == Rejected && r.IntN(6) == 0 {
				ops[k].Outcome = Failed
			}
		}
		limit := 2 + r.Int64N(8)
		initial := r.Int64N(4)
		cfg := standingConfig(limit, initial)
		if windows {
			cfg = tumblingConfig(limit, initial)
		}
		v := Judge(cfg, events(ops))
		cells := online(r, ops, limit, initial, windows)
		if err := Agree(v, cfg, maps.All(cells)); err != nil {
			t.Fatalf("limit %d, initial %d, windows %v: %v%s", limit, initial, windows, err, explain(ops))
		}
		for _, c := range cells {
			seen.note("false reject found online", c.Tally().FalseRejects > 0)
			seen.note("leak found online", c.Tally().Leak(limit) > 0)
			seen.note("crossed", c.Tally().Crossed)
		}
	}
	seen.check(t, 300)
}

// TestAgreeNamesTheDisagreement: each way of being wrong is found and said.
func TestAgreeNamesTheDisagreement(t *testing.T) {
	take := func(call int64, o Outcome) Event { return Event{Call: call, Reply: call + 1, Units: 1, Outcome: o} }
	history := []Event{take(0, Admitted), take(2, Admitted), take(4, Rejected)}
	cfg := standingConfig(1, 0)
	for _, c := range []struct {
		name, want string
		drive      func(*Cell)
	}{
		{"as it was", "", func(c *Cell) { c.Begin(1); c.Admit(1); c.Begin(1); c.Admit(1); c.Reject(1, c.Begin(1), 1) }},
		{"one admission lost", "admitted 1 units online, 2 in the history", func(c *Cell) { c.Begin(1); c.Admit(1) }},
		{"other initial units", "leak of 2 units online, 1 in the history", func(c *Cell) {
			c.Fill(1)
			c.Begin(2)
			c.Admit(2)
		}},
		{"wrong limit", "1 false rejects online, only 0 certain", func(c *Cell) {
			c.Begin(2)
			c.Admit(2)
			c.Reject(1, c.Begin(1), 3)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cell := new(Cell)
			c.drive(cell)
			err := Agree(Judge(cfg, history), cfg, maps.All(map[Key]*Cell{{}: cell}))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	v := Judge(cfg, history)
	if err := Agree(v, cfg, maps.All(map[Key]*Cell{})); err == nil ||
		!strings.Contains(err.Error(), "not counted online") {
		t.Errorf("a missing cell: %v", err)
	}
	other := new(Cell)
	other.Begin(1)
	if err := Agree(Verdict{}, cfg, maps.All(map[Key]*Cell{{Subject: 3}: other})); err == nil ||
		!strings.Contains(err.Error(), "no request in the history") {
		t.Errorf("a cell too many: %v", err)
	}
	crossing := tumblingConfig(5, 0)
	long := []Event{{Call: 0, Reply: width, Units: 1}}
	w := crossing.Window.At(crossing.Epoch).Index
	cell := new(Cell)
	cell.Begin(1)
	cell.Admit(1)
	if err := Agree(Judge(crossing, long), crossing, maps.All(map[Key]*Cell{{Index: w}: cell})); err == nil ||
		!strings.Contains(err.Error(), "unnoticed online") {
		t.Errorf("an unmarked crossing: %v", err)
	}
}

// TestGivenBackMeanwhile: room made while a request was under way does not prove
// its rejection wrong; room made before does, though the history, if the two
// share a timestamp, only calls it possible.
func TestGivenBackMeanwhile(t *testing.T) {
	cfg := standingConfig(1, 0)
	history := []Event{one(0, 0, 1, Admitted), {Kind: Refund, Call: 2, Reply: 5, Units: 1}, one(0, 5, 1, Rejected)}
	for _, before := range []bool{true, false} {
		c := new(Cell)
		c.Begin(1)
		c.Admit(1)
		if before {
			c.GiveBack(1)
		}
		mark := c.Begin(1)
		if !before {
			c.GiveBack(1)
		}
		if c.Reject(1, mark, 1) != before {
			t.Errorf("given back before: %v, called a false reject: %v", before, !before)
		}
		v := Judge(cfg, history)
		if v.FalseRejects != 0 || v.FalseRejectsPossible != 1 {
			t.Errorf("the history: %+v", v)
		}
		if err := Agree(v, cfg, maps.All(map[Key]*Cell{{}: c})); err != nil {
			t.Error(err)
		}
	}
}

// TestConcurrentRun judges a real run with workers that race: a counter that is
// right except for what is planted in it.
func TestConcurrentRun(t *testing.T) {
	const workers, each, subjects, limit = 16, 400, 20, 100
	h := NewHistory(HistoryOptions{Workers: workers, Limit: workers * each})
	cells := make([]Cell, subjects)
	var mu sync.Mutex
	used := make([]int64, subjects)
	leaked := 0
	refused := 0
	decide := func(s int) bool {
		mu.Lock()
		defer mu.Unlock()
		if used[s] == 10 && s < 5 && refused < 5 { // far from the limit: never right
			refused++
			return false
		}
		if used[s] >= limit && (s != 3 || leaked == 7) {
			return false
		}
		if used[s] >= limit {
			leaked++
		}
		used[s]++
		return true
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				s := (i + w) % subjects
				if i%4 == 0 {
					s = 3
				}
				c := &cells[s]
				mark := c.Begin(1)
				call := clock.Nano()
				ok := decide(s)
				e := Event{Call: call, Reply: clock.Nano(), Units: 1, Subject: uint32(s)}
				if ok {
					c.Admit(1)
				} else {
					e.Outcome = Rejected
					c.Reject(1, mark, limit)
				}
				h.Append(w, e)
			}
		})
	}
	wg.Wait()
	cfg := Config{Window: quota.Window{}, Limit: limit}
	v, err := h.Judge(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if v.Issued.Requests != workers*each || h.Lost() > 0 {
		t.Fatalf("%d events of %d", v.Issued.Requests, workers*each)
	}
	if v.LeakUnits != 7 || v.LeakWorst != 7 || v.LeakSubjects != 1 || v.LeakPossible != 7 || v.LeakedRequests != 7 {
		t.Errorf("planted a leak of 7 on one subject, found %+v", v)
	}
	if v.FalseRejects != 5 || v.FalseRejectUnits != 5 {
		t.Errorf("planted 5 false rejects, found %d", v.FalseRejects)
	}
	if v.MaxInFlight < 1 || v.MaxInFlight > workers {
		t.Errorf("most in flight: %d", v.MaxInFlight)
	}
	pairs := func(yield func(Key, *Cell) bool) {
		for s := range cells {
			if !yield(Key{Subject: uint32(s)}, &cells[s]) {
				return
			}
		}
	}
	if err := Agree(v, cfg, pairs); err != nil {
		t.Error(err)
	}
}
