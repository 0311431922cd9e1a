package oracle

import "iter"

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

// JudgeSubjects is a stand-in.
func JudgeSubjects(cfg Config, until int64, all iter.Seq2[[]Event, error]) (Verdict, error) {
	var list []Event
	for e := range all {
		list = append(list, e...)
	}
	return Judge(cfg, list), nil
}

// HistoryOptions is a stand-in.
type HistoryOptions struct {
	Workers int
	Limit   int64
	Dir     string
}

// Full is a stand-in.
func (h *History) Full() bool { return h.full.Load() >= h.max*3/4 }

// Close is a stand-in.
func (h *History) Close() error { return nil }

// NewHistory is a stand-in.
func NewHistory(o HistoryOptions) *History { return newHistory(o.Workers, o.Limit) }
