package measure

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/looks"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
)

// lookouts ask each store of a pass, on connections of their own, whether it is there
// and still holds what was put there. Stores that a planned outage takes away are left
// alone.
type lookouts struct {
	all  []*lookout
	done chan struct{}
	wg   sync.WaitGroup
}

// lookout is that of one store. Times are nanoseconds since the pass began.
type lookout struct {
	name  string
	store stores.Marker
	scope stores.Scope
	meter *stores.Meter // of the strategy's connections
	now   func() int64

	keys     int64       // that the mark consists of
	sign     stores.Sign // the last one of all its servers
	cut      int64       // connections that were lost so far
	seen     int64       // when it was last there
	away     int64       // since when it does not answer; 0 where it does
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
	i.n, i.to = i.n+n, to
}

// mark leaves the marks, before the strategy is asked anything.
func (l *lookouts) mark(ctx context.Context, s *site) error {
	l.done = make(chan struct{})
	for name, st := range s.stores {
		m, ok := st.Store.(stores.Marker)
		planned := slices.ContainsFunc(s.outages, func(o *outage) bool { return s.concerns(o, name) })
		if !ok || planned {
			continue
		}
		before, err := countOthers(ctx, st.Store)
		if err == nil {
			err = m.Mark(ctx, s.scope)
		}
		if err != nil {
			return err
		}
		after, err := countOthers(ctx, st.Store)
		if err != nil {
			return err
		}
		o := &lookout{name: name, store: m, scope: s.scope, meter: &st.meter, refusing: map[string]*incident{}, keys: max(0, after-before)}
		if o.sign, err = m.Marked(ctx, s.scope); err != nil {
			return fmt.Errorf("look at %s: %w", name, err)
		}
		l.all = append(l.all, o)
	}
	slices.SortFunc(l.all, func(a, b *lookout) int { return strings.Compare(a.name, b.name) })
	return nil
}

// prepared looks whether the stores still have what was set up before the pass.
func (l *lookouts) prepared(ctx context.Context) {
	for _, o := range l.all {
		o.now = func() int64 { return 0 }
		o.cut = o.meter.Lost.Load()
		l.wg.Go(func() { o.look(ctx) })
	}
	l.wg.Wait()
}

// marks is how many keys of the store with the name are marks.
func (l *lookouts) marks(name string) int64 {
	for _, o := range l.all {
		if o.name == name {
			return o.keys
		}
	}
	return 0
}

// begin starts to look, by the machine's clock in nanoseconds. end looks a last time,
// and removes the marks.
func (l *lookouts) begin(ctx context.Context, now func() int64) {
	begun := now()
	for _, o := range l.all {
		o.now = func() int64 { return now() - begun }
		o.cut = o.meter.Lost.Load()
		l.wg.Go(func() {
			for waitOr(looks.Every, l.done) {
				o.look(ctx)
			}
		})
	}
}

func (l *lookouts) end(ctx context.Context) {
	close(l.done)
	l.wg.Wait()
	for _, o := range l.all {
		l.wg.Go(func() {
			o.look(ctx)
			o.conclude()
			if !o.gone {
				asked, cancel := context.WithTimeout(ctx, looks.Timeout)
				defer cancel()
				_ = o.store.Unmark(asked, o.scope) // what is left goes with the scope
			}
		})
	}
	l.wg.Wait()
}

// absent are the stores that did not answer when the pass was over.
func (l *lookouts) absent() (names []string) {
	for _, o := range l.all {
		if o.gone {
			names = append(names, o.name)
		}
	}
	return names
}

// restarted reports whether the restart of a store was noticed.
func (l *lookouts) restarted(name string) bool {
	return slices.ContainsFunc(l.all, func(o *lookout) bool { return o.name == name && o.anew })
}

// look asks once.
func (o *lookout) look(ctx context.Context) {
	asked, cancel := context.WithTimeout(ctx, looks.Timeout)
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
			o.away, o.why = max(o.seen, 1), err
		}
		return
	}
	o.back(now)
	o.compare(sign, now)
	o.seen = now
}

// compare notes in what a sign differs from the one before it, and keeps it.
func (o *lookout) compare(sign stores.Sign, now int64) {
	if !sign.There && !o.lost {
		o.lost = true
		o.notice(quota.FaultEviction, "store-lost-data", "%s lost what the run kept there, %s", o.name, span(o.seen, now))
	}
	errors := o.sign.Errors
	switch {
	case stores.Restarted(o.sign.Incarnation, sign.Incarnation):
		// What it has not on a disk is gone, and so are its counts.
		errors, o.anew = nil, true
		o.notice(quota.FaultOutage, "store-restarted", "%s was restarted, or another server took its place, %s", o.name, span(o.seen, now))
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
func (o *lookout) back(now int64) {
	if o.away != 0 {
		o.notice(quota.FaultOutage, "store-failed", "%s did not answer as it should %s: %v", o.name, span(o.away, now), o.why)
		o.away = 0
	}
}

// conclude notes what was counted, when the pass is over.
func (o *lookout) conclude() {
	o.back(o.now())
	if i := o.severed; i.n > 0 {
		o.notice(quota.FaultOutage, "store-failed", "%s ended or lost %s of the strategy, %s", o.name,
			format.Number(i.n, "connection"), span(i.from, i.to))
	}
	for _, kind := range refusals {
		if i := o.refusing[kind]; i != nil {
			o.notice(quota.FaultOutage, "store-failed", "%s answered %s with the error %s, %s", o.name,
				format.Number(i.n, "command"), kind, span(i.from, i.to))
		}
	}
}

func (o *lookout) notice(fault quota.Fault, code, format string, args ...any) {
	o.notices = append(o.notices, harness.Notice{Fault: fault, Code: code, Detail: fmt.Sprintf(format, args...)})
}

// span is a stretch of the run, in seconds since its begin.
func span(from, to int64) string {
	if to == 0 {
		return "before the first request"
	}
	return fmt.Sprintf("between %.2f s and %.2f s", time.Duration(from).Seconds(), time.Duration(to).Seconds())
}

// refusals are errors by which a Redis says that it will not do what any client asks
// of it, whatever the strategy.
var refusals = []string{"OOM", "LOADING", "READONLY", "NOPERM", "NOAUTH", "WRONGPASS", "MISCONF", "MASTERDOWN",
	"CLUSTERDOWN", "NOREPLICAS", "ERR"}

// noticed is what happened to the stores.
func (p *pass) noticed() (out []harness.Notice) {
	for _, o := range p.lookouts.all {
		out = append(out, o.notices...)
	}
	for _, st := range p.s.stores {
		switch b, a := st.before, st.after; {
		case !b.Known || !a.Known || p.lookouts.restarted(st.name) || p.s.failedOver(st.name):
		case stores.Restarted(b.Incarnation, a.Incarnation):
			out = append(out, harness.Notice{Fault: quota.FaultOutage}, harness.Notice{Fault: quota.FaultEviction}) // store-restarted
		case a.Evicted > b.Evicted:
			out = append(out, harness.Notice{Fault: quota.FaultEviction}) // store-evicted
		}
	}
	if n := p.d.counts.degraded.Load(); n > 0 && len(p.s.outages) == 0 {
		out = append(out, harness.Notice{Fault: quota.FaultOutage, Code: "store-failed",
			Detail: "without a store, though no outage was planned: " + format.Number(n, "decision")})
	}
	return out
}
