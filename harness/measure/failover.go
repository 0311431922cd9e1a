package measure

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/stores"
)

// canFailOver returns nil, or why a replica cannot take a store's place in the outage of a run of that length.
func canFailOver(s stores.Store, o harness.Outage, length time.Duration) error {
	f, ok := s.(stores.FailsOver)
	if !ok {
		return errors.New("no store of its kind can")
	}
	from, _ := o.Within(length)
	return f.CanFailOver(o.Behind, length-from)
}

// befallen is the store of the outage; nil if the strategy does not use it.
func (o *outage) befallen() *siteStore {
	for name, st := range o.site.stores {
		if o.site.concerns(o.Store, name) {
			return st
		}
	}
	return nil
}

// inflict does to the store what is done instead of taking it away, and ends that after a wait.
func (o *outage) inflict(wait func()) error {
	st := o.befallen()
	if st == nil {
		return nil
	}
	mend, err := st.Store.(stores.Breakable).Break(o.ctx, o.Fault, o.site.scope) // as was checked
	if mend != nil {
		wait()
		err = errors.Join(err, mend(o.ctx))
	}
	return err
}

// failing calls do with the store of the outage, if the strategy uses it.
func (o *outage) failing(ctx context.Context, do func(stores.FailsOver, context.Context) error) error {
	if st := o.befallen(); st != nil {
		return do(st.Store.(stores.FailsOver), ctx) // as was checked
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
		return (o.Failover || o.restarts()) && s.concerns(o.Store, name)
	})
}

// restarts reports whether a server is killed and comes back, so that connections to it are found dead.
func (o *outage) restarts() bool { return o.Fault == "restarted" || o.Fault == "node-killed" }

// moves reports whether keys go to other servers of a cluster.
func (o *outage) moves() bool { return o.Fault == "slot-moved" || o.Fault == "node-killed" }

// evicts reports whether a store is to evict keys.
func (s *site) evicts(st *siteStore) bool {
	return st.Info().Evicts || slices.ContainsFunc(s.outages, func(o *outage) bool {
		return o.Fault == "evicting" && s.concerns(o.Store, st.name)
	})
}

// replicate waits until the replicas that are to take a store's place have what was
// written so far, and has them follow as late as planned from then on.
func (s *site) replicate(ctx context.Context) error {
	for _, o := range s.outages {
		if !o.Failover {
			continue
		}
		err := o.failing(ctx, func(f stores.FailsOver, ctx context.Context) (err error) {
			if o.Behind > 0 {
				o.lags, err = f.Lag(ctx, o.Behind)
			}
			return errors.Join(err, f.Replicate(ctx))
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
	for _, o := range s.outages {
		if o.Failover {
			errs = append(errs, o.failing(ctx, stores.FailsOver.Recover))
		}
	}
	return errors.Join(errs...)
}
