package monitor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
)

// Stores asks each store of a pass, on connections of its own, whether it is there and still holds what was put there.
type Stores struct {
	all []*watched
	end func() // of looking
	wg  sync.WaitGroup
}

// watched is one store. Times are nanoseconds since the pass began.
type watched struct {
	name  string
	store stores.Marker
	scope stores.Scope
	meter *stores.Meter // of the strategy's connections
	now   func() int64

	keys     int64       // that the mark consists of
	sign     stores.Sign // the last one of all its servers
	cut      int64       // connections that were lost so far
	seen     int64       // when it was last there
	away     int64       // since when it does not answer; 0 if it does
	why      error       // of the first question that it did not answer
	notices  []harness.Notice
	lost     bool
	anew     bool // it was restarted
	gone     bool // it did not answer the last question of the pass
	severed  incident
	refusing map[string]*incident // by the kind of error
}

// incident is something that happened several times.
type incident struct {
	n        int64
	from, to int64
}

func (i *incident) add(n, from, to int64) {
	if i.n == 0 {
		i.from = from
	}
	i.n = i.n + n
	i.to = to
}

// Mark leaves a mark in the store if it can hold one. It is called before the strategy is asked anything. Meter is that
// of the strategy's connections.
func (l *Stores) Mark(ctx context.Context, name string, store stores.Store, scope stores.Scope,
	meter *stores.Meter) error {
	marker, ok := store.(stores.Marker)
	if !ok {
		return nil
	}
	before, err := Count(ctx, store)
	if err == nil {
		err = marker.Mark(ctx, scope)
	}
	if err != nil {
		return err
	}
	after, err := Count(ctx, store)
	if err != nil {
		return err
	}
	o := &watched{name: name, store: marker, scope: scope, meter: meter, refusing: map[string]*incident{},
		keys: max(0, after.Keys-before.Keys)}
	o.sign, err = marker.Marked(ctx, scope)
	if err != nil {
		return fmt.Errorf("look at %s: %w", name, err)
	}
	l.all = append(l.all, o)
	slices.SortFunc(l.all, func(a, b *watched) int { return strings.Compare(a.name, b.name) })
	return nil
}

// Len is how many stores hold a mark.
func (l *Stores) Len() int { return len(l.all) }

// Prepared looks whether the stores still have what was set up before the pass.
func (l *Stores) Prepared(ctx context.Context) {
	for _, watched := range l.all {
		watched.now = func() int64 { return 0 }
		watched.cut = watched.meter.Lost.Load()
		l.wg.Go(func() { watched.look(ctx) })
	}
	l.wg.Wait()
}

// Marks is how many keys of the store with the name are marks.
func (l *Stores) Marks(name string) int64 {
	for _, watched := range l.all {
		if watched.name == name {
			return watched.keys
		}
	}
	return 0
}

// Begin starts to look, by the machine's clock in nanoseconds.
func (l *Stores) Begin(ctx context.Context, now func() int64) {
	begun := now()
	for _, watched := range l.all {
		watched.now = func() int64 { return now() - begun }
		watched.cut = watched.meter.Lost.Load()
	}
	l.end = clock.Aside(func(wait func(time.Duration) bool) {
		for _, watched := range l.all {
			l.wg.Go(func() {
				for wait(Every) {
					watched.look(ctx)
				}
			})
		}
		l.wg.Wait()
	})
}

// End looks a last time, and removes the marks.
func (l *Stores) End(ctx context.Context) {
	l.end()
	for _, watched := range l.all {
		l.wg.Go(func() {
			watched.look(ctx)
			watched.conclude()
			if !watched.gone {
				asked, cancel := context.WithTimeout(ctx, Timeout)
				defer cancel()
				_ = watched.store.Unmark(asked, watched.scope) // what is left goes with the scope
			}
		})
	}
	l.wg.Wait()
}

// Absent are the stores that did not answer when the pass was over.
func (l *Stores) Absent() (names []string) {
	for _, watched := range l.all {
		if watched.gone {
			names = append(names, watched.name)
		}
	}
	return names
}

// Restarted reports whether the restart of a store was noticed.
func (l *Stores) Restarted(name string) bool {
	return slices.ContainsFunc(l.all, func(o *watched) bool { return o.name == name && o.anew })
}

// look asks once.
func (o *watched) look(ctx context.Context) {
	asked, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	sign, err := o.store.Marked(asked, o.scope)
	now := o.now()
	if ctx.Err() != nil { // the run was given up
		return
	}
	if n := o.meter.Lost.Load(); n > o.cut {
		o.severed.add(n-o.cut, o.seen, now)
		o.cut = n
	}
	o.gone = err != nil
	if err != nil {
		if o.away == 0 {
			o.away = max(o.seen, 1)
			o.why = err
		}
		return
	}
	o.back(now)
	o.compare(sign, now)
	o.seen = now
}

// compare notes in what a sign differs from the one before it, and keeps it.
func (o *watched) compare(sign stores.Sign, now int64) {
	if !sign.There && !o.lost {
		o.lost = true
		o.notice(quota.FaultEviction, "store-lost-data", "%s lost what the run kept there, %s", o.name, Span(o.seen, now))
	}
	errors := o.sign.Errors
	switch {
	case stores.Restarted(o.sign.Incarnation, sign.Incarnation):
		// What it has not on a disk is gone, and so are its counts.
		errors = nil
		o.anew = true
		o.notice(quota.FaultOutage, codes.StoreRestarted, "%s was restarted, or another server took its place, %s", o.name,
			Span(o.seen, now))
		o.notices = append(o.notices, harness.Notice{Fault: quota.FaultEviction})
	case sign.Incarnation != o.sign.Incarnation: // some of its servers did not answer, nor tell of errors
		return
	}
	for _, kind := range refusals {
		if n := sign.Errors[kind] - errors[kind]; n > 0 {
			if o.refusing[kind] == nil {
				o.refusing[kind] = &incident{}
			}
			o.refusing[kind].add(n, o.seen, now)
		}
	}
	o.sign = sign
}

// back notes that a store that was away answers again, or that the pass is over.
func (o *watched) back(now int64) {
	if o.away != 0 {
		o.notice(quota.FaultOutage, "store-failed", "%s did not answer as it should %s: %v", o.name, Span(o.away, now), o.why)
		o.away = 0
	}
}

// conclude notes what was counted, when the pass is over.
func (o *watched) conclude() {
	o.back(o.now())
	if i := o.severed; i.n > 0 {
		o.notice(quota.FaultOutage, "store-failed", "%s ended or lost %s of the strategy, %s", o.name,
			format.Number(i.n, "connection"), Span(i.from, i.to))
	}
	for _, kind := range refusals {
		if i := o.refusing[kind]; i != nil {
			o.notice(quota.FaultOutage, "store-failed", "%s answered %s with the error %s, %s", o.name,
				format.Number(i.n, "command"), kind, Span(i.from, i.to))
		}
	}
}

func (o *watched) notice(fault quota.Fault, code, format string, args ...any) {
	o.notices = append(o.notices, harness.Notice{Fault: fault, Code: code, Detail: fmt.Sprintf(format, args...)})
}

// Span is a stretch of the run, in seconds since its begin.
func Span(from, to int64) string {
	if to == 0 {
		return "before the first request"
	}
	return fmt.Sprintf("between %.2f s and %.2f s", time.Duration(from).Seconds(), time.Duration(to).Seconds())
}

// refusals are errors by which a Redis says that it will not do what any client asks
// of it, whatever the strategy.
var refusals = []string{"OOM", "LOADING", "READONLY", "NOPERM", "NOAUTH", "WRONGPASS", "MISCONF", "MASTERDOWN",
	"CLUSTERDOWN", "NOREPLICAS", "ERR"}

// Notices is what happened to the stores.
func (l *Stores) Notices() (out []harness.Notice) {
	for _, watched := range l.all {
		out = append(out, watched.notices...)
	}
	return out
}

// Countable is the store if its keys can be counted while a run goes on, and nil otherwise. A server that others use
// too counts theirs as well.
func Countable(store stores.Store) stores.Counter {
	counter, ok := store.(stores.Counter)
	if !ok || !store.Owned() || Follows(store) {
		return nil
	}
	return counter
}

// Follows reports whether what a store holds is another one's.
func Follows(store stores.Store) bool {
	follower, ok := store.(stores.Follower)
	return ok && follower.Follows()
}

// Count counts the keys of all that use a store; none if that is not known.
func Count(ctx context.Context, store stores.Store) (usage stores.Usage, err error) {
	counter := Countable(store)
	if counter == nil {
		return usage, nil
	}
	return counter.Count(ctx)
}

// Keys are the keys of a pass' stores at its quarters, by the store's name. They are counted on the harness' own
// connection.
type Keys struct{ Over map[string][]results.StoredAt }

// Schedule plans the counts of a pass of that length that starts now. Count gives the strategy's keys in each store
// that can be counted. The returned function ends the counts.
func (k *Keys) Schedule(now func() int64, length time.Duration,
	count func() map[string]results.StoredAt) (stop func()) {
	k.Over = map[string][]results.StoredAt{}
	begun := now()
	return clock.Aside(func(wait func(time.Duration) bool) {
		for q := range bounds.Quarters - 1 {
			at := int64(length) / bounds.Quarters * int64(q+1)
			if !wait(time.Duration(at - now() + begun)) {
				return
			}
			for name, n := range count() {
				n.AtNS = now() - begun
				k.Over[name] = append(k.Over[name], n)
			}
		}
	})
}
