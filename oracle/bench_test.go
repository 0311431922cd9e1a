package oracle

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/quota"
)

// BenchmarkOnline is what judging costs per decision, on one hot key with 50
// workers: two readings of the clock alone, then with a cell, then with a
// history too.
func BenchmarkOnline(b *testing.B) {
	const workers = 50
	run := func(name string, cell, history bool) {
		b.Run(name, func(b *testing.B) {
			var c Cell
			h := NewHistory(HistoryOptions{Workers: workers * 8, Limit: int64(b.N) + 1})
			var next atomic.Int64
			b.SetParallelism(workers)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				w := int(next.Add(1)-1) % (workers * 8)
				for pb.Next() {
					var mark int64
					if cell {
						mark = c.Begin(1)
					}
					e := Event{Call: clock.Nano(), Units: 1, Outcome: Rejected}
					e.Reply = clock.Nano()
					if cell {
						c.Reject(1, mark, 0)
					}
					if history {
						h.Append(w, e)
					}
				}
			})
		})
	}
	run("clock", false, false)
	run("cell", true, false)
	run("cell+history", true, true)
}

// BenchmarkJudge is the time for two million events.
func BenchmarkJudge(b *testing.B) {
	const n = 2_000_000
	r := seeded(1)
	for _, c := range []struct {
		name     string
		subjects int64
		window   quota.Window
		refunds  bool
	}{
		{"month/subjects=1", 1, quota.Window{Kind: quota.CalendarMonth}, false},
		{"month/subjects=100000", 100_000, quota.Window{Kind: quota.CalendarMonth}, false},
		{"fixed/subjects=10000", 10_000, quota.Window{Kind: quota.Fixed, Length: 100 * time.Millisecond}, false},
		{"rolling/subjects=1", 1, quota.Window{Kind: quota.Rolling, Length: 10 * time.Millisecond}, false},
		{"bucket/subjects=1", 1, quota.Window{Kind: quota.Bucket, Refill: 1000, Length: 10 * time.Millisecond}, false},
		{"bucket/subjects=10000", 10_000, quota.Window{Kind: quota.Bucket, Refill: 1000, Length: 10 * time.Millisecond},
			false},
		{"first-request/subjects=1", 1, quota.Window{Kind: quota.FirstRequest, Length: 10 * time.Millisecond}, false},
		{"first-request/subjects=10000", 10_000, quota.Window{Kind: quota.FirstRequest, Length: 100 * time.Millisecond},
			false},
		{"standing/subjects=1", 1, quota.Window{}, true},
	} {
		h := NewHistory(HistoryOptions{Workers: 50, Limit: n})
		for i := range int64(n) {
			call := i * 500
			e := Event{Call: call, Reply: call + r.Int64N(50_000), Units: 1, Subject: uint32(r.Int64N(c.subjects)),
				Outcome: Outcome(i & 1)}
			if c.refunds && i&3 == 2 {
				e.Kind = Refund
			}
			h.Append(int(i%50), e)
		}
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				v, err := h.Judge(Config{Window: c.window, Limit: 1000, Epoch: time.Unix(1_700_000_000, 0)})
				if err != nil || v.Issued.Requests == 0 {
					b.Fatal("nothing judged", err)
				}
			}
		})
	}
}
