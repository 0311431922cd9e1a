package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/quota"
)

// World holds what engines share: the rules by which transitions follow from where the
// actors are. An engine embeds it, and sets its fields before the first run.
type World struct {
	Setup   *Setup
	Witness *witness.Witness
	Traits  Traits
	// Last is the client that asks when the others have ended; nil for none.
	Last *Client
	Run  Run
	// InTurn is set while the clients come one after the other.
	InTurn bool
	// Budget is what the run has used up.
	Budget Budget
	// Err is what went wrong in the run.
	Err error

	port Engine
}

// Connect says which engine the world belongs to, and what it runs.
func (w *World) Connect(port Engine, setup *Setup) {
	w.port = port
	w.Setup = setup
	w.Run.Truth = Truth{Policy: &setup.Policy, Second: setup.Second, Initial: setup.Used, Instances: setup.Instances}
}

// Client is the client of that number, which has not begun.
func (w *World) Client(i int) Client {
	return Client{Index: i, Name: ClientName(i), Script: w.Setup.Script(i), Pending: -1, Setup: w.Setup, Run: &w.Run,
		Witness: w.Witness}
}

// Common implements [Engine].
func (w *World) Common() *World { return w }

// Crashable implements [Engine] for engines that inject no faults, or in which an instance ends with its client.
func (*World) Crashable(int) bool { return false }

// State implements [Engine] for engines in which what is stored or remembered cannot be hashed.
func (*World) State() (Digest, error) { return Digest{}, nil }

// Fresh begins a run at that moment, without what is left of the one before.
func (w *World) Fresh(start time.Time) {
	w.Budget = Budget{}
	w.Err = nil
	w.Run.Paused = 0
	w.Run.Waited = false
	w.Run.Silent = false
	clear(w.Run.Aborts)
	w.Run.Timeline.Begin()
	w.Run.Truth.Begin(start)
}

// faults lists those that have happened.
func (w *World) faults() (out []quota.Fault) {
	for i, fault := range Faults {
		if w.Budget[i] > 0 && (fault != quota.FaultClock || !w.Setup.Passes) {
			out = append(out, fault)
		}
	}
	return out
}

// Enabled appends the transitions of this state. symmetric leaves out clients that could as
// well be another one that has not started either.
func (w *World) Enabled(out []Choice, symmetric bool) []Choice {
	snapshot := w.port.Snapshot()
	began := w.began(snapshot)
	runnable := false
	waits := false
	for i := range snapshot.Actors {
		actor := &snapshot.Actors[i]
		switch {
		case actor.At == Done || w.isLast(actor) && actor.At == Between:
			continue
		case actor.At == Between && actor.Client == nil:
			if actor.Prompts && !began {
				out = append(out, Choice{Kind: PromptJob, ID: actor.ID})
			}
			continue
		case !actor.Ready:
			waits = waits || actor.Sleeps
			continue
		}
		runnable = runnable || !actor.Idle
		if actor.At != Unborn || !symmetric || !w.hasTwin(snapshot.Actors[:i], actor) {
			out = append(out, Choice{Kind: StepActor, ID: actor.ID})
		}
	}
	n := len(out)
	if !began {
		out = w.enabledFaults(out, snapshot)
	}
	if w.mayAsk(snapshot) && w.Setup.LastAsks(&w.Run.Truth) {
		for i := range w.Setup.Instances {
			if !began || w.lastOf(snapshot).Instance == i {
				out = append(out, Choice{Kind: Ask, ID: i})
			}
		}
	}
	wait := Choice{Kind: TickClock, ID: TickWaiter}
	// If nothing is left but to wait, waiting is no fault.
	if !runnable && waits && len(snapshot.Stuck) == 0 && !slices.Contains(out[n:], wait) {
		out = append(out, wait)
	}
	return out
}

func (w *World) isLast(actor *Actor) bool { return actor.Client != nil && actor.Client == w.Last }

// lastOf is the last client if it has begun.
func (w *World) lastOf(snapshot *Snapshot) *Actor {
	for i := range snapshot.Actors {
		if w.isLast(&snapshot.Actors[i]) {
			return &snapshot.Actors[i]
		}
	}
	return nil
}

func (w *World) began(snapshot *Snapshot) bool { return w.lastOf(snapshot) != nil }

// hasTwin reports whether an earlier client has not started either and could take the place
// of a: it runs the same script on an instance of which the same is true. Whose name is
// whose makes no difference to strategies that compare names for equality only. Those of
// this module do, and others are not asked.
//
// Instances are interchangeable that have done nothing so far and will do the same. If one
// has several clients, or a job of its own, a swap would have to take them along; that is
// not attempted.
func (w *World) hasTwin(earlier []Actor, actor *Actor) bool {
	return slices.ContainsFunc(earlier, func(o Actor) bool {
		return o.At == Unborn && o.Client != nil && slices.Equal(o.Client.Script, actor.Client.Script) &&
			(o.Instance == actor.Instance ||
				o.Members == 1 && actor.Members == 1 && o.Lives == actor.Lives &&
					w.Setup.SkewOf(o.Instance) == w.Setup.SkewOf(actor.Instance))
	})
}

func (w *World) enabledFaults(out []Choice, snapshot *Snapshot) []Choice {
	if len(w.Setup.Faults) == 0 && !w.Setup.Passes {
		return out
	}
	may := func(fault quota.Fault) bool { return w.Setup.Has(fault) && *w.Budget.of(fault) < w.Setup.Times }
	for i := range snapshot.Actors {
		actor := &snapshot.Actors[i]
		if actor.Client == nil && w.Traits.Foreign { // a goroutine, which works for nobody knows whom
			continue
		}
		for j := range injections {
			injection := &injections[j]
			if injection.befalls(actor) && may(injection.fault) {
				out = append(out, Choice{Kind: injection.kind, ID: actor.ID})
			}
		}
	}
	if may(quota.FaultCrash) {
		for i := range w.Setup.Instances {
			if w.port.Crashable(i) {
				out = append(out, Choice{Kind: CrashHost, ID: i})
			}
		}
	}
	if may(quota.FaultEviction) {
		for _, k := range w.keys() {
			out = append(out, Choice{Kind: EvictKey, Key: k.Name})
		}
	}
	if slices.ContainsFunc(snapshot.Actors, func(actor Actor) bool { return actor.At != Done }) {
		for _, choice := range []Choice{{Kind: DropScript}, {Kind: EmptyStore}} {
			if may(choice.Fault()) {
				out = append(out, choice)
			}
		}
	} else if w.Traits.Wall { // no further client asks
		return out
	}
	return w.enabledTicks(out, snapshot)
}

func (w *World) enabledTicks(out []Choice, snapshot *Snapshot) []Choice {
	atRest := snapshot.atRest()
	if !w.Setup.Ticks() || w.ticks() >= w.Setup.MostTicks || w.Setup.Passes && !atRest {
		return out
	}
	seen := map[time.Time]bool{}
	for kind := range TickKinds {
		if !w.meets(kind, atRest) {
			continue
		}
		t, ok := w.Deadline(kind)
		if !ok || seen[t] && kind != TickLast {
			continue
		}
		seen[t] = true
		out = append(out, Choice{Kind: TickClock, ID: kind})
	}
	if snapshot.Waits {
		out = append(out, Choice{Kind: TickClock, ID: TickWaiter})
	}
	return out
}

// meets reports whether time may move to a deadline of that kind.
func (w *World) meets(kind int, atRest bool) bool {
	setup := w.Setup
	switch kind {
	case TickHalf:
		return setup.Passes && setup.Halves() || w.Traits.Foreign || setup.Fractions() && atRest
	case TickBefore:
		return setup.Fractions() && atRest
	case TickLast:
		return setup.Passes && setup.KeysEndWindows()
	case TickRest: // foreign code may have timers, each of which would wake thousands of times in a week
		return setup.Passes && !w.Traits.Foreign
	}
	return true
}

// Deadline is the next one of a kind.
func (w *World) Deadline(kind int) (next time.Time, found bool) {
	snapshot := w.port.Snapshot()
	earlier := func(t time.Time) {
		if kind != TickBefore && kind != TickLast {
			t = w.Setup.Rounded(t)
		}
		if t.After(snapshot.Now) && (!found || t.Before(next)) {
			next = t
			found = true
		}
	}
	switch kind {
	case TickExpiry, TickLast:
		for _, k := range w.keys() {
			if k.Left > fakeredis.Lingering {
				earlier(snapshot.Now.Add(k.Left))
			}
		}
		return next, found
	case TickWaiter:
		earlier(snapshot.Wakes)
		return next, found
	}
	for i := range w.Setup.Instances {
		skew := w.Setup.SkewOf(i)
		earlier(w.moment(kind, snapshot.Now.Add(skew)).Add(-skew))
	}
	return next, found
}

// moment is the next one of a kind by a clock that tells at, or at itself if there is none.
func (w *World) moment(kind int, at time.Time) time.Time {
	setup := w.Setup
	switch kind {
	case TickWindow:
		return w.past(setup.WindowEnd(at))
	case TickHalf:
		half, ok := setup.WindowHalf(at)
		switch {
		case !ok:
			return at
		case setup.Policy.Window.Kind == quota.FirstRequest: // whose halves are past a millisecond already
			return half
		}
		return w.past(half)
	case TickSecond:
		return w.past(setup.SecondEnd(at))
	case TickBefore:
		return setup.WindowBefore(at)
	case TickRest:
		return setup.Rested(at)
	}
	return at
}

// past is t, and for foreign code and services the first whole millisecond after it: a clock tells
// nanoseconds, so no request meets the very moment at which a window ends; and Redis
// tells the deadlines of keys in milliseconds, so parts of one would be the error of the
// store.
func (w *World) past(t time.Time) time.Time {
	if w.Traits.Foreign || w.Traits.Wall {
		return nextMillisecond(t)
	}
	return t
}

func (w *World) keys() []Holding {
	keys, err := w.port.Holdings()
	if err != nil && w.Err == nil {
		w.Err = err
	}
	return keys
}

// Inject counts the fault of a step, and says on its line what happens.
func (w *World) Inject(choice Choice) {
	injection := choice.injection()
	timeline := &w.Run.Timeline
	*w.Budget.of(injection.fault)++
	switch {
	case choice.Kind == CrashHost:
		timeline.Mark(fmt.Sprintf("instance %d", choice.ID), codes.RoleInstance, injection.event, injection.text)
	case injection.at == Done:
		timeline.Mark("store", codes.RoleStore, injection.event, injection.text+choice.Key)
	default:
		timeline.Write("", injection.text, injection.event)
	}
}

// TickTexts say what a deadline of each kind is.
var TickTexts = [...]string{
	"a key expires", "a window ends", "a wait ends or a job is due", "half of the window passes",
	"the window is about to end", "the last millisecond of a key", "nobody has asked for many windows",
	"the second window ends",
}

func (w *World) ticks() int { return *w.Budget.of(quota.FaultClock) }

// Ticking is called before time moves on to a deadline. What it returns is called after, and counts and notes that.
func (w *World) Ticking() (ticked func(what string)) {
	snapshot := w.port.Snapshot()
	from := snapshot.Now
	busy := !snapshot.atRest()
	return func(what string) {
		now := w.port.Snapshot().Now
		duration := now.Sub(from)
		if busy {
			w.Run.Paused += duration
		}
		*w.Budget.of(quota.FaultClock)++
		w.Run.Truth.At(now)
		w.Run.Timeline.Mark("clock", codes.RoleClock, codes.EventTick,
			fmt.Sprintf("%s later: %s", quota.LengthText(duration), what))
	}
}

// mayAsk reports whether all scripts have ended, everything is at rest, and the last client
// has not been rejected.
func (w *World) mayAsk(snapshot *Snapshot) bool {
	if w.Last == nil || len(snapshot.Stuck) > 0 {
		return false
	}
	for i := range snapshot.Actors {
		switch actor := &snapshot.Actors[i]; {
		case actor.Client == nil || w.isLast(actor):
			if actor.At != Between && (actor.At != Done || w.isLast(actor)) {
				return false
			}
		case actor.At != Done:
			return false
		}
	}
	return true
}

// MayAsk reports whether the last client may ask an instance.
func (w *World) MayAsk(instance int) bool {
	snapshot := w.port.Snapshot()
	last := w.lastOf(snapshot)
	return w.mayAsk(snapshot) && instance >= 0 && instance < w.Setup.Instances &&
		(last == nil || last.Instance == instance)
}

// Serial is what happens next if clients come one after the other and nothing fails: a step
// of a client that is under way, else of a job, else of the next client. ok is false at the
// end.
func (w *World) Serial() (choice Choice, ok bool) {
	snapshot := w.port.Snapshot()
	const begins, waits, works, goesOn = 1, 2, 3, 4
	rank := 0
	for i := range snapshot.Actors {
		actor := &snapshot.Actors[i]
		if actor.At == Done || actor.At == Between && (actor.Client == nil || w.isLast(actor)) {
			continue
		}
		r := works
		switch {
		case !actor.Ready:
			if !w.Traits.Foreign || !actor.Sleeps || len(snapshot.Stuck) > 0 {
				continue
			}
			r = waits
		case actor.Client != nil && actor.At == Unborn:
			r = begins
		case actor.Client != nil:
			r = goesOn
		}
		if r > rank {
			choice = Choice{Kind: StepActor, ID: actor.ID}
			rank = r
			if r == waits {
				choice = Choice{Kind: TickClock, ID: TickWaiter}
			}
		}
	}
	return choice, rank > 0
}

// Look describes where the run has got to.
func (w *World) Look() Look {
	snapshot := w.port.Snapshot()
	look := Look{AtRest: snapshot.atRest(), Ended: true, Faults: w.faults(), Ticked: w.ticks() > 0, Signs: snapshot.Signs}
	able := w.Traits.Foreign // it says itself who is stuck
	for i := range snapshot.Actors {
		actor := &snapshot.Actors[i]
		look.Ended = look.Ended && !w.isLast(actor) && (actor.Client == nil || actor.At == Done)
		able = able || actor.Ready || actor.Sleeps
	}
	for i := range snapshot.Actors {
		if actor := &snapshot.Actors[i]; !able && actor.At != Done && actor.At != Between {
			look.Stuck = append(look.Stuck, actor.Text.String())
		}
	}
	return look
}

// Flight is where the actor of that number is, for one who counts preemptions.
func (w *World) Flight(actor int) Place {
	snapshot := w.port.Snapshot()
	if i := slices.IndexFunc(snapshot.Actors, func(a Actor) bool { return a.ID == actor }); i >= 0 {
		return snapshot.Actors[i].At
	}
	return Done
}
