// Package witness watches whether a strategy works where it can be seen: through
// the clients it was given, under its callers' contexts, and by the clock in
// force. A runner that has not seen a strategy's work must not call it clean: it
// withholds its claim and gives the [Reason].
//
// A [Witness] hooks into the clients of a run. It is cheap enough to stay there
// for every command of a search.
package witness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Code names a kind of reason.
type Code string

// The codes.
const (
	// NoCommand: a strategy that needs a store issued no command through its client.
	NoCommand Code = "no-store-command"
	// ContextLost: a command came without the context of the call that it is part
	// of, so it could not be scheduled, delayed or failed.
	ContextLost Code = "context-lost"
	// OtherClient: a command reached the store past the clients that the strategy
	// was given.
	OtherClient Code = "other-client"
	// OwnGoroutine: a command came from a goroutine that the strategy started.
	OwnGoroutine Code = "own-goroutine"
	// AllFailed: no take was answered without an error.
	AllFailed Code = "every-take-failed"
	// WallClock: an argument of a command holds the wall clock's time.
	WallClock Code = "wall-clock"
	// NeverAgain: after a rejection, several windows passed at rest, and a take was
	// still rejected.
	NeverAgain Code = "never-admits-again"
	// WaitsInCall: package time has passed within a call, while no other caller could go on.
	WaitsInCall Code = "waits-in-call"
)

// Reason is why a claim is withheld.
type Reason struct {
	Code Code
	// Detail is one sentence without a full stop.
	Detail string
}

// String is the detail with its code.
func (r Reason) String() string { return fmt.Sprintf("%s (%s)", r.Detail, r.Code) }

// Config of a witness.
type Config struct {
	// NeedsStore is set if the strategy cannot work without a command to a store.
	NeedsStore bool
	// Caller reports whether a context is one that the runner expects commands
	// under: that of a call or of a job in progress, or, while instances are set up
	// and looked at, any. nil expects every context.
	Caller func(ctx context.Context) bool
	// Real and Virtual are the wall clock's time and the clock's in force when the
	// run begins. Timestamps are looked for if both are given and lie more than
	// 100 days apart.
	Real, Virtual time.Time
	// AllUntil is the number of commands whose arguments are all looked at. Of later
	// ones, one in sixteen is. 0 looks at those of all.
	AllUntil int64
}

// sampled is one in how many later commands are looked at.
const sampled = 16

// byChance reports whether so few arguments look like the present that random numbers may
// have done so: of numbers with 32, 53 or 64 bits up to 1 in 600 does. The clock's time is in
// every decision, or nearly so.
func byChance(hits, looked int64) bool {
	return looked > 10 && hits < 3 || hits*50 < looked
}

// near is how far from the wall clock's time an argument may lie and still be
// taken for a timestamp: deadlines lie up to a month ahead.
const near = 40 * 24 * time.Hour

// Witness watches one strategy's run. Its methods are safe for concurrent use. A
// nil Witness watches nothing.
type Witness struct {
	cfg     Config
	stamps  bool
	lowest  [units]float64 // bounds of timestamps near the wall clock's time
	highest [units]float64
	month   string // of the wall clock's time, as in 2026-11

	seen atomic.Int64
	// looked is how many commands were looked at for timestamps, and hits how many arguments
	// were such.
	looked, hits atomic.Int64
	// told is set once a store has answered the wall clock's time: what the strategy
	// sends from then on may be that.
	told             atomic.Bool
	answered, failed atomic.Int64
	mu               sync.Mutex
	reasons          []Reason
	codes            atomic.Uint32  // bits of the codes noted, in their order below
	after            map[Code]int64 // how many commands had been seen then
}

// order of codes in reports.
var order = []Code{OwnGoroutine, OtherClient, ContextLost, NoCommand, AllFailed, WallClock, NeverAgain, WaitsInCall}

// New makes a witness.
func New(cfg Config) *Witness {
	witness := &Witness{cfg: cfg}
	if apart := cfg.Real.Sub(cfg.Virtual).Abs(); !cfg.Real.IsZero() && !cfg.Virtual.IsZero() && apart > 100*24*time.Hour {
		witness.stamps = true
		witness.month = cfg.Real.UTC().Format("2006-01")
		for i := range witness.lowest {
			witness.lowest[i] = inUnit(cfg.Real.Add(-near), i)
			witness.highest[i] = inUnit(cfg.Real.Add(near), i)
		}
	}
	return witness
}

// Note adds a reason. Only the first of each code is kept.
func (w *Witness) Note(code Code, detail string) {
	if w == nil {
		return
	}
	if w.Noted(code) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.Noted(code) {
		w.codes.Store(w.codes.Load() | bit(code))
		w.reasons = append(w.reasons, Reason{code, detail})
		if w.after == nil {
			w.after = map[Code]int64{}
		}
		w.after[code] = w.seen.Load()
	}
}

var errPast = errors.New("a command was sent past the client that the strategy was given: " +
	"by a client of its own, by its WithTimeout, or to subscribe")

// Past notes that something was sent past the clients that the strategy was given, and returns what that is answered.
func (w *Witness) Past() error {
	w.Note(OtherClient, errPast.Error())
	return errPast
}

// NotedAfter is how many commands had been seen when a reason of that code was noted; 0
// if none was.
func (w *Witness) NotedAfter(code Code) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.after[code]
}

// Withdraw takes back what was noted with the code: it has turned out to be something
// else.
func (w *Witness) Withdraw(code Code) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.codes.Store(w.codes.Load() &^ bit(code))
	w.reasons = slices.DeleteFunc(w.reasons, func(reason Reason) bool { return reason.Code == code })
}

// Noted reports whether a reason of that code has been noted.
func (w *Witness) Noted(code Code) bool { return w != nil && w.codes.Load()&bit(code) != 0 }

func bit(code Code) uint32 { return 1 << max(0, slices.Index(order, code)) }

// Taken notes what a take was answered: a decision, or an error.
func (w *Witness) Taken(err error) {
	switch {
	case w == nil:
	case err != nil:
		w.failed.Add(1)
	default:
		w.answered.Add(1)
	}
}

// Seen is how many commands and statements came through the hooks.
func (w *Witness) Seen() int64 { return w.seen.Load() }

// Reasons are why the run's claim must be withheld, none if all was seen. What
// can only be known at the end, such as that no command ever came, is worked out
// from what was seen so far.
func (w *Witness) Reasons() []Reason {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	out := slices.Clone(w.reasons)
	w.mu.Unlock()
	answered := w.answered.Load()
	failed := w.failed.Load()
	if w.cfg.NeedsStore && !w.Noted(OwnGoroutine) && w.seen.Load() == 0 && answered+failed > 0 {
		out = append(out, Reason{NoCommand, "it needs a store, and no command came through the client that it was given"})
	}
	if failed > 0 && answered == 0 {
		out = append(out, Reason{AllFailed, "every take ended in an error"})
	}
	slices.SortFunc(out, func(a, b Reason) int { return slices.Index(order, a.Code) - slices.Index(order, b.Code) })
	return out
}

// Command looks at one command or statement, its context and its arguments.
func (w *Witness) Command(ctx context.Context, name string, args []any) {
	w.look(ctx, func() string { return name }, args)
}

// look is Command with a name that is worked out if it is told.
func (w *Witness) look(ctx context.Context, name func() string, args []any) {
	n := w.seen.Add(1)
	if w.cfg.Caller != nil && !w.cfg.Caller(ctx) {
		w.Note(ContextLost, fmt.Sprintf("%s came without the context of the call that it is part of", name()))
	}
	if w.stamps && !w.told.Load() && (w.cfg.AllUntil == 0 || n <= w.cfg.AllUntil || n%sampled == 0) {
		looked := w.looked.Add(1)
		for i, value := range args {
			if isTTL(args, i) {
				continue
			}
			if unit := w.timestamp(value); unit != "" && !byChance(w.hits.Add(1), looked) {
				w.Note(WallClock, fmt.Sprintf("%s holds %v, the wall clock's time in %s: take the time from Env.Clock, "+
					"or set Meta.Foreign if it comes from time.Now", name(), value, unit))
			}
		}
		if w.Noted(WallClock) && byChance(w.hits.Load(), looked) {
			w.Withdraw(WallClock)
		}
	}
}
