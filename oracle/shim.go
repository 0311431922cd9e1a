package oracle

import (
	"iter"
	"sort"

	"github.com/quotabench/quotabench/quota"
)

// Expectation is what a counter must contain.
type Expectation struct{ Units, Surplus, Held Interval }

// Expect is a stand-in.
func Expect(cfg Config, subject uint32, events []Event, at Reading, counts quota.Counting) (Expectation, bool, error) {
	initial := cfg.initial(subject)
	if cfg.Window.Kind.Tumbling() {
		sp := spans{window: cfg.Window, epoch: cfg.Epoch}
		w := sp.at(at.Call)
		if at.Reply >= w.end {
			return Expectation{}, false, nil
		}
		if !(w.start <= 0 && 0 < w.end) {
			initial = 0
		}
		from := sort.Search(len(events), func(i int) bool { return events[i].Call >= w.start })
		for _, e := range events[:from] {
			if e.Reply >= w.start {
				return Expectation{}, false, nil
			}
		}
		var in []Event
		for _, e := range events[from:] {
			if e.Kind != Take && e.TakeReply < w.start {
				continue
			}
			in = append(in, e)
		}
		events = in
	}
	u, s, err := Expected(events, at, counts, initial)
	return Expectation{Units: u, Surplus: s}, true, err
}

// Judge is a stand-in.
func (h *History) Judge(cfg Config) (Verdict, error) { return Judge(cfg, h.Events()), nil }

// Subjects is a stand-in.
func (h *History) Subjects() iter.Seq2[[]Event, error] {
	return func(yield func([]Event, error) bool) {
		events := h.Events()
		for len(events) > 0 {
			n := 1
			for n < len(events) && events[n].Subject == events[0].Subject {
				n++
			}
			if !yield(events[:n], nil) {
				return
			}
			events = events[n:]
		}
	}
}

// Judging is a stand-in.
type Judging struct {
	cfg Config
	all []Event
}

// NewJudge is a stand-in.
func NewJudge(cfg Config) *Judging { return &Judging{cfg: cfg} }

// Subject is a stand-in.
func (j *Judging) Subject(e []Event) { j.all = append(j.all, e...) }

// Verdict is a stand-in.
func (j *Judging) Verdict() Verdict { return Judge(j.cfg, j.all) }

// HistoryOptions is a stand-in.
type HistoryOptions struct {
	Workers int
	Limit   int64
	Dir     string
}

// Full is a stand-in.
func (h *History) Full() bool { return false }

// Close is a stand-in.
func (h *History) Close() error { return nil }

// NewHistory is a stand-in.
func NewHistory(o HistoryOptions) (*History, error) { return newHistory(o.Workers, o.Limit), nil }
