package reserve

import (
	"context"
	"fmt"
	"sync"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

var appLockMeta = strategies.Meta{
	Name:      "app-lock",
	Needs:     []strategies.Need{strategies.NeedRedis},
	Kinds:     family.Windowed,
	Reset:     strategies.ResetsNever,
	GivesBack: true,
	Counts:    quota.CountsAdmitted, SharesMemory: true,
	Guarantee: []quota.Clause{{
		// A SET whose caller has given up waiting can still land, after the next
		// holder's GET: lost replies, repeats and outages are not tolerated.
		Property:  quota.PropertyLeak,
		Tolerates: []quota.Fault{quota.FaultCrash},
		Formula:   "L with one instance",
		Bound: func(p quota.Params) int64 {
			if p.Instances <= 1 {
				return 0
			}
			return p.Offered
		},
	}},
	Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		return &appLock{
			checkThenSet: checkThenSet{redis: strategies.Redis(env), keys: newKeys(env)},
			locks:        locks{clock: env.Clock},
		}, nil
	},
}

// appLock is what ADR-RM-3 means by locking in the application: the race of
// check-then-set is gone among the callers of one process, and is as it was
// between two of them.
type appLock struct {
	checkThenSet
	locks locks
}

// Take implements [strategies.Strategy].
func (s *appLock) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	unlock, err := s.locks.lock(ctx, tenant{req.Policy.Name, req.Subject})
	if err != nil {
		return quota.Decision{}, fmt.Errorf("waiting for the lock of %s: %w", req.Subject, err)
	}
	defer unlock()
	return s.checkThenSet.Take(ctx, req)
}

// Refund implements [strategies.Refunder].
func (s *appLock) Refund(ctx context.Context, r quota.Reservation) error {
	if r.Request.Policy == nil {
		return family.ErrNoReservation
	}
	unlock, err := s.locks.lock(ctx, tenant{r.Request.Policy.Name, r.Request.Subject})
	if err != nil {
		return fmt.Errorf("waiting for the lock of %s: %w", r.Request.Subject, err)
	}
	defer unlock()
	return s.checkThenSet.Refund(ctx, r)
}

// locks is a mutex per tenant, kept for as long as any caller wants it.
type locks struct {
	clock quota.Clock
	// mu is never held across anything that waits, so a scheduler need not know.
	mu     sync.Mutex
	wanted map[tenant]*lock
}

type lock struct {
	quota.Mutex
	callers int // who hold it or wait for it
}

// lock waits for the tenant's mutex and returns what lets go of it.
func (l *locks) lock(ctx context.Context, t tenant) (unlock func(), err error) {
	m := l.want(t)
	if err := m.Lock(ctx); err != nil {
		l.leave(t, m)
		return nil, err
	}
	return func() {
		m.Unlock()
		l.leave(t, m)
	}, nil
}

func (l *locks) want(t tenant) *lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.wanted[t]
	if m == nil {
		if l.wanted == nil {
			l.wanted = map[tenant]*lock{}
		}
		m = &lock{Mutex: l.clock.NewMutex()}
		l.wanted[t] = m
	}
	m.callers++
	return m
}

func (l *locks) leave(t tenant, m *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.callers--; m.callers == 0 {
		delete(l.wanted, t)
	}
}
