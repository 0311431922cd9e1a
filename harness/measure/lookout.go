package measure

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quotabench/quotabench/harness"
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
	now   func() int64

	seen    int64 // when it was last there
	away    int64 // since when it does not answer; 0 where it does
	notices []harness.Notice
	lost    bool
}

// How often a store is asked, and how long it may take to answer.
var (
	lookEvery   = 100 * time.Millisecond
	lookTimeout = 2 * time.Second
)

// mark leaves the marks, before the pass begins.
func (l *lookouts) mark(ctx context.Context, s *site) error {
	l.done = make(chan struct{})
	for name, st := range s.stores {
		m, ok := st.Store.(stores.Marker)
		planned := slices.ContainsFunc(s.outages, func(o *outage) bool { return s.concerns(o, name) })
		if f, is := st.Store.(stores.Follower); !ok || planned || is && f.Follows() {
			continue
		}
		if err := m.Mark(ctx, s.scope); err != nil {
			return err
		}
		l.all = append(l.all, &lookout{name: name, store: m, scope: s.scope})
	}
	slices.SortFunc(l.all, func(a, b *lookout) int { return strings.Compare(a.name, b.name) })
	return nil
}

// marks is how many keys of the store with the name are marks.
func (l *lookouts) marks(name string) int64 {
	if slices.ContainsFunc(l.all, func(o *lookout) bool { return o.name == name }) {
		return 1
	}
	return 0
}

// begin starts to look, by the machine's clock in nanoseconds. end looks a last time,
// and removes the marks.
func (l *lookouts) begin(ctx context.Context, now func() int64) {
	begun := now()
	for _, o := range l.all {
		o.now = func() int64 { return now() - begun }
		l.wg.Go(func() {
			for waitOr(lookEvery, l.done) {
				o.look(ctx)
			}
		})
	}
}

func (l *lookouts) end(ctx context.Context) {
	close(l.done)
	l.wg.Wait()
	for _, o := range l.all {
		o.look(ctx)
		o.back(o.now())
		if !o.lost {
			_ = o.store.Unmark(ctx, o.scope) // what is left goes with the scope
		}
	}
}

// look asks once.
func (o *lookout) look(ctx context.Context) {
	asked, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	there, err := o.store.Marked(asked, o.scope)
	now := o.now()
	switch {
	case ctx.Err() != nil: // the run was given up
	case err != nil:
		if o.away == 0 {
			o.away = max(o.seen, 1)
		}
	default:
		o.back(now)
		if !there && !o.lost {
			o.lost = true
			o.notice(quota.FaultEviction, "store-lost-data", "%s lost what the run kept there, between %s and %s", o.name, moment(o.seen), moment(now))
		}
		o.seen = now
	}
}

// back notes that a store that was away answers again, or that the pass is over.
func (o *lookout) back(now int64) {
	if o.away != 0 {
		o.notice(quota.FaultOutage, "store-failed", "%s did not answer from %s to %s", o.name, moment(o.away), moment(now))
		o.away = 0
	}
}

func (o *lookout) notice(fault quota.Fault, code, format string, args ...any) {
	o.notices = append(o.notices, harness.Notice{Fault: fault, Code: code, Detail: fmt.Sprintf(format, args...)})
}

// moment is a time of the run in seconds.
func moment(ns int64) string { return fmt.Sprintf("%.2f s", time.Duration(ns).Seconds()) }

// refusals are errors by which a Redis says that it will not do what any client asks
// of it, whatever the strategy.
var refusals = []string{"OOM", "LOADING", "READONLY", "NOPERM", "NOAUTH", "WRONGPASS", "MISCONF", "MASTERDOWN", "CLUSTERDOWN", "NOREPLICAS", "ERR"}

// noticed is what happened to the stores.
func (p *pass) noticed() (out []harness.Notice) {
	for _, o := range p.lookouts.all {
		out = append(out, o.notices...)
	}
	for _, st := range p.s.stores {
		b, a := st.before, st.after
		if !b.Known || !a.Known {
			continue
		}
		if a.Incarnation != b.Incarnation && p.s.failedOver(st.name) {
			continue // as planned
		}
		if a.Incarnation != b.Incarnation {
			out = append(out, harness.Notice{Fault: quota.FaultOutage}, harness.Notice{Fault: quota.FaultEviction}) // store-restarted
			continue
		}
		if a.Evicted > b.Evicted {
			out = append(out, harness.Notice{Fault: quota.FaultEviction}) // store-evicted
		}
		for _, kind := range refusals {
			if n := a.Errors[kind] - b.Errors[kind]; n > 0 {
				out = append(out, harness.Notice{Fault: quota.FaultOutage, Code: "store-failed", Detail: fmt.Sprintf("%s answered %s with the error %s", st.name, harness.Plural(n, "command"), kind)})
			}
		}
	}
	if n := p.d.counts.degraded.Load(); n > 0 && len(p.s.outages) == 0 {
		out = append(out, harness.Notice{Fault: quota.FaultOutage, Code: "store-failed", Detail: "without a store, though no outage was planned: " + harness.Plural(n, "decision")})
	}
	return out
}
