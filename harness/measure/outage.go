package measure

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/internal/trouble/network"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
)

// outage is a planned outage of one store in one run. While it lasts, every read
// and write on the client's connections fails as if the server had gone.
type outage struct {
	trouble.Event
	network.Switch
	site        *site
	ctx         context.Context // of what is done to the store
	from, until atomic.Int64    // when it was, on the run's clock; set by the timers
	// gone and back are when it was away for certain: the switch is turned between from and gone, and between back
	// and until.
	gone, back atomic.Int64
	// lags is set if the replica gets each write later, and need not be detached.
	lags bool
	// err is why the outage could not be brought about or ended. It may be read when the outage has ended.
	err error
}

// schedule plans the outage of a pass that starts now and lasts for duration. The
// returned function ends it at once.
func (o *outage) schedule(now func() int64, duration time.Duration) (stop func()) {
	from, to := o.When.Within(duration)
	return clock.Aside(func(wait func(time.Duration) bool) {
		if !o.awaitStart(from, wait) {
			return
		}
		began := now()
		o.from.Store(began)
		// The end is counted from the actual beginning, so that a late timer does not shorten the outage.
		awaitEnd := func() {
			passed := time.Duration(now() - began)
			wait(to - from - passed)
		}
		if o.Breaks() {
			o.err = o.inflict(awaitEnd)
		} else {
			o.takeAway(now, awaitEnd)
		}
		o.until.Store(now())
	})
}

// awaitStart waits until the outage begins, and reports whether it is to begin. A replica that is to
// be behind at that time, and cannot lag, is detached so much earlier.
func (o *outage) awaitStart(from time.Duration, wait func(time.Duration) bool) bool {
	behind := o.What.For
	if o.lags {
		behind = 0
	}
	if !wait(from - behind) {
		return false
	}
	if behind <= 0 {
		return true
	}
	o.err = o.replicated(o.ctx, stores.FailsOver.Detach)
	return o.err == nil && wait(behind)
}

// takeAway cuts off the connections to the store until the outage ends. Meanwhile the replica takes
// its place, or it loses what it holds, if that is planned.
func (o *outage) takeAway(now func() int64, awaitEnd func()) {
	o.Set(true)
	o.gone.Store(now())
	if o.failsOver() {
		o.err = o.replicated(o.ctx, stores.FailsOver.FailOver)
	}
	awaitEnd()
	store := o.store()
	if o.What.Word == trouble.Empty && store != nil {
		o.err = store.Wipe(o.ctx, o.site.scope)
	}
	o.back.Store(now())
	o.Set(false)
}

// reconnectGrace is how long after an outage errors are still its doing: pooled
// connections are found dead one by one. After as many failed dials as its pool has
// connections, go-redis looks for the server once a second.
const reconnectGrace = int64(1100 * time.Millisecond)

// span is when the outage was, since the epoch; ok is false if it never began.
func (o *outage) span(epoch int64) (span results.Span, ok bool) {
	from := o.from.Load()
	to := o.until.Load()
	away := [2]int64{o.gone.Load() - epoch, o.back.Load() - epoch}
	return results.Span{Store: o.Where.Name, FromNS: from - epoch, ToNS: to - epoch, Away: away}, from != 0
}

// canFailOver returns nil, or why a replica cannot take a store's place in the outage of a run of that length.
func canFailOver(store stores.Store, event *trouble.Event, length time.Duration) error {
	over, ok := store.(stores.FailsOver)
	if !ok {
		return errors.New("no store of its kind can")
	}
	from, _ := event.When.Within(length)
	return over.CanFailOver(event.What.For, length-from)
}

// store is that of the outage; nil if the strategy does not use it.
func (o *outage) store() *siteStore {
	for name, store := range o.site.stores {
		if o.site.concerns(o.Where.Name, name) {
			return store
		}
	}
	return nil
}

// inflict does to the store what is done instead of taking it away, and ends that after a wait.
func (o *outage) inflict(wait func()) error {
	store := o.store()
	if store == nil {
		return nil
	}
	mend, err := store.Store.(stores.Breakable).Break(o.ctx, string(o.What.Word), o.site.scope) // as was checked
	if mend != nil {
		wait()
		err = errors.Join(err, mend(o.ctx))
	}
	return err
}

// replicated calls do with the store of the outage, if the strategy uses it.
func (o *outage) replicated(ctx context.Context, do func(stores.FailsOver, context.Context) error) error {
	if store := o.store(); store != nil {
		return do(store.Store.(stores.FailsOver), ctx) // as was checked
	}
	return nil
}

// concerns reports whether what is planned for one store befalls the one with the name: that one, or
// the same one by another name.
func (s *site) concerns(planned, name string) bool {
	if planned == name {
		return true
	}
	away, ok1 := s.cfg.Stores.Get(planned)
	other, ok2 := s.cfg.Stores.Get(name)
	return ok1 && ok2 && away == other
}

// failedOver reports whether another server, or the same one anew, was planned to take the place of the store.
func (s *site) failedOver(name string) bool {
	return slices.ContainsFunc(s.outages, func(o *outage) bool {
		return (o.failsOver() || o.restarts()) && s.concerns(o.Where.Name, name)
	})
}

// restarts reports whether a server is killed and comes back, so that connections to it are found dead.
func (o *outage) restarts() bool {
	return o.What.Word == trouble.Restarted || o.What.Word == trouble.NodeKilled
}

// failsOver reports whether a replica takes the place of its master.
func (o *outage) failsOver() bool { return o.What.Word == trouble.Failover }

// moves reports whether keys go to other servers of a cluster.
func (o *outage) moves() bool {
	return o.What.Word == trouble.SlotMoved || o.What.Word == trouble.NodeKilled
}

// evicts reports whether a store is to evict keys.
func (s *site) evicts(store *siteStore) bool {
	return store.Info().Evicts || slices.ContainsFunc(s.outages, func(o *outage) bool {
		return o.What.Word == trouble.Evicting && s.concerns(o.Where.Name, store.name)
	})
}

// replicate waits until the replicas that are to take a store's place have all writes so far, and has them follow as
// late as planned from then on.
func (s *site) replicate(ctx context.Context) error {
	for _, outage := range s.outages {
		if !outage.failsOver() {
			continue
		}
		err := outage.replicated(ctx, func(over stores.FailsOver, ctx context.Context) (err error) {
			if outage.What.For > 0 {
				outage.lags, err = over.Lag(ctx, outage.What.For)
			}
			return errors.Join(err, over.Replicate(ctx))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// recover gives stores that failed over a replica again.
func (s *site) recover(ctx context.Context) error {
	var errs []error
	for _, outage := range s.outages {
		if outage.failsOver() {
			errs = append(errs, outage.replicated(ctx, stores.FailsOver.Recover))
		}
	}
	return errors.Join(errs...)
}

// link is the network between an instance and a store, for its connections; nil if nothing is to be wrong with it.
func (s *site) link(store string, instance int) func(net.Conn) net.Conn {
	random := seed.Rand(s.cfg.Seed, seed.Conditions, s.round, uint64(instance), uint64(len(s.links)))
	var own trouble.List
	for _, event := range s.network {
		if s.concerns(event.Where.Name, store) && event.Where.Has(instance) {
			own = append(own, event)
		}
	}
	link := network.NewLink(own, s.cfg.Duration, func() int64 { return s.timebase.nano() + 1 }, random)
	if link == nil {
		return nil
	}
	s.links = append(s.links, link)
	return link.Wrap
}

// loses reports whether requests to a store, or with "" to any, may fail by what is wrong with the network.
func (s *site) loses(store string) bool {
	return slices.ContainsFunc(s.network, func(event trouble.Event) bool {
		return len(event.Faults()) > 0 && (store == "" || s.concerns(event.Where.Name, store))
	})
}

// losses notes how many requests and replies the network has lost.
func (p *pass) losses() {
	for _, link := range p.site.links {
		p.run.LostRequests += link.Lost.Load()
		p.run.LostReplies += link.LostReplies.Load()
	}
}

// goWrong begins what is wrong with the network, and plans the outages. Pauses are counted from now. What it returns
// ends them.
func (s *site) goWrong() (over []func()) {
	s.began.Store(s.timebase.nano())
	for _, link := range s.links {
		link.Begin()
		over = append(over, link.End)
	}
	for _, outage := range s.outages {
		over = append(over, outage.schedule(s.timebase.nano, s.cfg.Duration))
	}
	return over
}
