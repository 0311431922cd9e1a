package reserve

import (
	"context"
	"fmt"
	"sync"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

var checkThenSetMeta = family.GivingBack(strategies.Meta{
	Name:  "check-then-set",
	About: strategies.About{Core: true, Control: strategies.ControlRacy},
	Needs: []strategies.Need{strategies.NeedRedis},
	Reset: strategies.ResetsNever,
	// No clause: a late SET erases any number of reservations made since its GET.
	Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		return &family.CheckThenSet{Redis: strategies.Redis(env), Key: newKeys(env).used}, nil
	},
})

var appLockMeta = family.GivingBack(strategies.Meta{
	Name:         "app-lock",
	Needs:        []strategies.Need{strategies.NeedRedis},
	Reset:        strategies.ResetsNever,
	SharesMemory: true,
	Guarantee: []quota.Clause{
		// A SET whose caller has given up waiting can still land, after the next
		// holder's GET: lost replies, repeats and outages are not tolerated.
		family.ExactlyUnless("L", func(params quota.Params) bool {
			return params.Instances > 1
		}, quota.FaultCrash).Under("with one instance"),
	},
	Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		lock := &appLock{clock: env.Clock}
		lock.Locked = family.Locked{
			CheckThenSet: family.CheckThenSet{Redis: strategies.Redis(env), Key: newKeys(env).used}, Lock: lock.lock,
		}
		return lock, nil
	},
})

// appLock is what ADR-RM-3 means by locking in the application: the race of
// check-then-set is gone among the callers of one process, and is as it was
// between two of them.
type appLock struct {
	family.Locked
	clock quota.Clock
	// mu is never held across anything that waits, so a scheduler need not know.
	mu sync.Mutex
	// wanted is a mutex per tenant, kept for as long as any caller wants it.
	wanted map[tenant]*lock
}

type lock struct {
	quota.Mutex
	callers int // who hold it or wait for it
}

// lock waits for a tenant's mutex and returns what lets go of it.
func (s *appLock) lock(ctx context.Context, policy *quota.Policy, subject quota.Subject) (unlock func(), err error) {
	t := tenant{policy.Name, subject}
	lock := s.want(t)
	if err := lock.Lock(ctx); err != nil {
		s.leave(t, lock)
		return nil, fmt.Errorf("waiting for the lock of %s: %w", subject, err)
	}
	return func() {
		lock.Unlock()
		s.leave(t, lock)
	}, nil
}

func (s *appLock) want(t tenant) *lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.wanted[t]
	if m == nil {
		if s.wanted == nil {
			s.wanted = map[tenant]*lock{}
		}
		m = &lock{Mutex: s.clock.NewMutex()}
		s.wanted[t] = m
	}
	m.callers++
	return m
}

func (s *appLock) leave(t tenant, m *lock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.callers--
	if m.callers == 0 {
		delete(s.wanted, t)
	}
}
