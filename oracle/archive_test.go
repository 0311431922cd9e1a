package oracle

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
)

// figure is what an archived history is held to.
type figure struct {
	leak, possible, worst, crossings, leakWindows int64
	falseRejects, falsePossible                   int64
	linear                                        Linear
}

func figureOf(v Verdict) figure {
	return figure{
		v.LeakUnits, v.LeakPossible, v.LeakWorst, v.Crossings, v.LeakWindows, v.FalseRejects, v.FalseRejectsPossible,
		v.Linear,
	}
}

// archive is a history in testdata, with the events that it was written from.
type archive struct {
	name    string
	limit   int64
	window  quota.Window
	initial map[uint32]int64
	events  []Event
	want    figure
	// rolling is the verdict by a rolling window of the same length, if wanted.
	rolling *figure
}

// Moments of the archives are seconds; every operation takes a millisecond.
func at(kind Kind, second, units int64, o Outcome) Event {
	call := second * int64(time.Second)
	return Event{Kind: kind, Call: call, Reply: call + int64(time.Millisecond), Units: units, Outcome: o}
}

// of names the take of a give-back by its second.
func (e Event) of(second int64) Event {
	e.TakeCall = second * int64(time.Second)
	e.TakeReply = e.TakeCall + int64(time.Millisecond)
	if e.Kind == Expire {
		e.Reply = e.Call
	}
	return e
}

func (e Event) by(subject uint32) Event {
	e.Subject = subject
	return e
}

func archives() []archive {
	minute := quota.Window{Kind: quota.Fixed, Length: time.Minute}
	rolling := quota.Window{Kind: quota.Rolling, Length: time.Minute}
	month := quota.Window{Kind: quota.CalendarMonth}
	var racing, burst []Event
	for range 6 { // all read 0, and all set 1
		racing = append(racing, at(Take, 1, 1, Admitted))
	}
	for i := range int64(5) {
		burst = append(burst, at(Take, 54+i, 1, Admitted), at(Take, 60+i, 1, Admitted))
	}
	return []archive{
		{
			// The control, with a refund after the window's end that frees nothing.
			name: "exact-late-refund", limit: 1, window: minute,
			events: []Event{at(Take, 10, 1, Admitted), at(Take, 65, 1, Admitted), at(Refund, 70, 1, Admitted).of(10),
				at(Take, 75, 1, Rejected)},
			want: figure{crossings: 1, linear: Linear{true, true, true}},
		},
		{
			// A counter that gives a late refund to the window in force.
			name: "late-refund-frees-the-next-window", limit: 1, window: minute,
			events: []Event{at(Take, 10, 1, Admitted), at(Take, 65, 1, Admitted), at(Refund, 70, 1, Admitted).of(10),
				at(Take, 75, 1, Admitted)},
			want: figure{leak: 1, possible: 1, worst: 1, crossings: 1, leakWindows: 1, linear: Linear{Decided: true}},
		},
		{
			// A counter that keeps what was refunded in time.
			name: "refund-is-forgotten", limit: 1, window: minute,
			events: []Event{at(Take, 10, 1, Admitted), at(Refund, 20, 1, Admitted).of(10), at(Take, 30, 1, Rejected)},
			want:   figure{crossings: 1, falseRejects: 1, falsePossible: 1},
		},
		{
			name: "check-then-set", limit: 3, window: month,
			events: append(racing, at(Take, 2, 1, Rejected), at(Take, 1, 1, Admitted).by(1)),
			want:   figure{leak: 3, possible: 3, worst: 3, crossings: 1, leakWindows: 1, linear: Linear{Decided: true}},
		},
		{
			name: "boundary-burst", limit: 5, window: minute, events: burst,
			want:    figure{linear: Linear{true, true, true}},
			rolling: &figure{leak: 5, possible: 5, worst: 5, crossings: 1, leakWindows: 1},
		},
		{
			// Room for both rejections of subject 0; that of subject 1 may have come first.
			name: "false-rejects", limit: 5, window: month, initial: map[uint32]int64{0: 1, 1: 4},
			events: []Event{
				at(Take, 1, 2, Admitted), at(Take, 2, 2, Rejected), at(Take, 3, 1, Rejected),
				at(Take, 4, 1, Admitted).by(1), at(Take, 4, 1, Rejected).by(1), at(Take, 5, 1, Rejected).by(1),
			},
			want: figure{crossings: 2, falseRejects: 2, falsePossible: 3},
		},
		{
			// Twice one too many, a minute apart; the refund frees room as long as its take
			// has it, and no longer.
			name: "rolling", limit: 2, window: rolling,
			events: []Event{
				at(Take, 0, 1, Admitted), at(Take, 10, 1, Admitted), at(Take, 20, 1, Admitted),
				at(Take, 90, 2, Admitted), at(Take, 100, 1, Admitted),
				at(Take, 200, 2, Admitted), at(Refund, 210, 2, Admitted).of(200), at(Take, 220, 2, Admitted),
				at(Refund, 290, 2, Admitted).of(220), at(Take, 295, 2, Admitted),
			},
			// The bound above the possible leak takes no account of refunds.
			want: figure{leak: 2, possible: 4, worst: 1, crossings: 3, leakWindows: 2},
		},
		{
			// An abandoned upload: its room may be taken again once its URL has ended, and
			// the store may refuse it as long as it has not noticed. Subject 1 takes it
			// before that.
			name: "standing-abandoned", limit: 10, window: quota.Window{},
			events: []Event{
				at(Take, 1, 6, Admitted), at(Expire, 901, 6, Admitted).of(1), at(Take, 950, 8, Rejected),
				at(Take, 2000, 8, Admitted),
				at(Take, 1, 6, Admitted).by(1), at(Take, 800, 8, Admitted).by(1), at(Expire, 901, 6, Admitted).of(1).by(1),
			},
			want: figure{leak: 4, possible: 4, worst: 4, crossings: 2, leakWindows: 1, falsePossible: 1},
		},
		{
			// A commit of less frees the rest, one of more is no leak for certain.
			name: "commits", limit: 10, window: minute,
			events: []Event{
				at(Take, 1, 8, Admitted), at(Commit, 2, 5, Admitted).of(1), at(Take, 3, 7, Admitted),
				at(Take, 1, 8, Admitted).by(1), at(Commit, 2, -3, Admitted).of(1).by(1), at(Take, 3, 2, Rejected).by(1),
			},
			want: figure{possible: 1, crossings: 1, falsePossible: 1},
		},
	}
}

func (a *archive) header() Header {
	return Header{
		Strategy: a.name, Policy: quota.Policy{Name: a.name, Limit: a.limit, Unit: "units", Window: a.window},
		Epoch: time.Unix(1_793_491_200, 0).UTC(), Initial: a.initial, // a full minute
	}
}

// TestArchives judges the archived histories. They were written once and never
// change: a change of the format that cannot read them, or of the judge that
// sees something else in them, fails here.
func TestArchives(t *testing.T) {
	for _, a := range archives() {
		t.Run(a.name, func(t *testing.T) {
			name := filepath.Join("testdata", a.name+".history")
			if testenv.Update() {
				a.write(t, name)
			}
			f := open(t, name)
			if f.Header.Strategy != a.name || f.Takes+f.GiveBacks != int64(len(a.events)) {
				t.Errorf("%+v with %d events of %d", f.Header, f.Takes+f.GiveBacks, len(a.events))
			}
			v, err := f.Judge()
			if err != nil || figureOf(v) != a.want {
				t.Errorf("%v\n got %+v\nwant %+v", err, figureOf(v), a.want)
			}
			if a.rolling == nil {
				return
			}
			cfg := f.Header.Config()
			cfg.Window.Kind = quota.Rolling
			v, err = f.JudgeBy(cfg)
			if err != nil || figureOf(v) != *a.rolling {
				t.Errorf("rolling: %v\n got %+v\nwant %+v", err, figureOf(v), *a.rolling)
			}
		})
	}
	files, err := filepath.Glob("testdata/*.history")
	if err != nil || len(files) != len(archives()) {
		t.Errorf("%d files, %v", len(files), err)
	}
}

func (a *archive) write(t *testing.T, name string) {
	h := NewHistory(HistoryOptions{Workers: 1})
	for _, e := range a.events {
		h.Append(0, e)
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteHistory(f, a.header(), h); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
