package harness

import (
	"iter"
	"math"
	"testing"
	"time"

	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

const ms = int64(time.Millisecond)

// second is a fixed window that begins with the run: [plantedEpoch] is a full second.
var second = quota.Window{Kind: quota.Fixed, Length: time.Second}

var plantedEpoch = time.Unix(1_000_000, 0)

// take is a request of instance 0 that took one nanosecond.
func take(subject uint32, at, units int64, o oracle.Outcome) oracle.Event {
	return oracle.Event{Subject: subject, Call: at, Reply: at + 1, Units: units, Outcome: o}
}

// takes are n requests of one unit, one after the other, from a moment on.
func takes(subject uint32, from int64, n int, o oracle.Outcome) (out []oracle.Event) {
	for i := range n {
		out = append(out, take(subject, from+10*int64(i), 1, o))
	}
	return out
}

// give is a give-back of units of a request, one nanosecond long.
func give(kind oracle.Kind, of oracle.Event, at, units int64) oracle.Event {
	return oracle.Event{
		Subject: of.Subject, Instance: of.Instance, Kind: kind, Call: at, Reply: at + 1, Units: units, TakeCall: of.Call,
		TakeReply: of.Reply,
	}
}

func by(instance uint8, events ...[]oracle.Event) (out []oracle.Event) {
	for _, list := range events {
		for _, e := range list {
			e.Instance = instance
			out = append(out, e)
		}
	}
	return out
}

// planted are the facts of a run with that history, of a limit of 10. Its callers
// counted what the history holds, and its workload and strategy promise nothing.
func planted(t *testing.T, w quota.Window, events ...[]oracle.Event) *Facts {
	t.Helper()
	h := oracle.NewHistory(oracle.HistoryOptions{Workers: 1})
	t.Cleanup(func() { _ = h.Close() })
	f := &Facts{
		Plan:      &Plan{Traffic: Traffic{Workload: &workloads.Meta{Name: "planted"}}},
		Selection: strategies.Selection{Meta: &strategies.Meta{Name: "planted", Counts: quota.CountsAdmitted}},
		Policy:    &quota.Policy{Name: "planted", Limit: 10, Unit: "units", Window: w},
		Epoch:     plantedEpoch, History: h, Instances: 1,
	}
	for _, list := range events {
		for _, e := range list {
			h.Append(0, e)
			switch {
			case e.Kind != oracle.Take:
			case e.Outcome == oracle.Admitted:
				f.Counts.Admitted++
			case e.Outcome == oracle.Failed:
				f.Counts.Errors.Other++
			default:
				f.Counts.Rejected++
			}
		}
	}
	return f
}

// judged is the run that Judge makes of the facts.
func judged(t *testing.T, f *Facts, visitors ...visitor) (results.Run, oracle.Verdict) {
	t.Helper()
	run := results.Run{Audit: results.Audit{Valid: true}}
	v, err := judge(&run, f, t.Context().Err, visitors)
	if err != nil {
		t.Fatal(err)
	}
	return run, v
}

// broken is a history that fails if it is told to.
type broken struct {
	history
	judge, subjects error
	judgements      int // that succeed
}

func (b *broken) Judge(cfg oracle.Config, visit ...oracle.Visitor) (oracle.Verdict, error) {
	b.judgements--
	if b.judgements < 0 && b.judge != nil {
		return oracle.Verdict{}, b.judge
	}
	return b.history.Judge(cfg, visit...)
}

func (b *broken) Subjects() iter.Seq2[[]oracle.Event, error] {
	if b.subjects == nil {
		return b.history.Subjects()
	}
	return func(yield func([]oracle.Event, error) bool) { yield(nil, b.subjects) }
}

// near tells floating point figures apart that differ by more than rounding.
func near(a, b float64) bool { return math.Abs(a-b) < 1e-6 }
