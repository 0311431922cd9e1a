package ttlcounter

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// The values of the option init.
const (
	initProse   = "prose"
	initListing = "listing"
)

var decrExpireMeta = family.PerWindow(strategies.Meta{
	Name:    "decr-expire",
	Counts:  quota.CountsAttempts,
	Options: []quota.Option{{Name: "init", Default: initProse, Values: []string{initProse, initListing}}, family.Down},
	About:   strategies.About{Record: ofDesignRecord("ADR-009")},
	Guarantee: []quota.Clause{
		// As with incr-expire, a command that comes after its own window's key has
		// expired begins that window anew, so a clock that passes the end in between
		// is not tolerated. The same expiry between the two commands does the
		// opposite: the key is gone, DECR makes one at -1, and all is rejected.
		family.ExactlyUnlessOpen(quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry, quota.FaultOutage),
		family.RoomForSingleUnits,
	},
	Down: family.WhenDown,
	Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		expire := &decrExpire{countdown: countdown{newCounter(env, linkHits), env.Options["init"] == initListing}}
		if expire.expires {
			expire.once = new(once)
		}
		return expire, nil
	},
})

// decrExpire is ADR-009 as its prose has it: the first access creates the
// count at its maximum, and only the caller that creates it sets the expiry. A caller
// cannot know that it is the first, so each one tries; the two commands are not
// atomic. A key that expires between them is made again by DECR, without a time
// to live: it rejects callers that still ask for that window, and nothing removes it.
//
// With init=listing the steady state is the listing's: DECR alone, and EXPIRE by
// the caller that is answered the maximum less its own units. A caller that dies
// before its EXPIRE leaves a key that never expires, and a key that is lost in
// mid-window is made again at -1.
type decrExpire struct {
	countdown
	once *once // nil for init=prose
}

// once remembers which counts this process has created, of one window: with the
// next window's first key it forgets those of the last. A key that is created
// once more stays unchanged, so forgetting costs a command and nothing else.
type once struct {
	// mu is never held across anything that waits.
	mu    sync.Mutex
	label string
	keys  map[string]bool
}

// done reports whether the window's key has been created.
func (o *once) done(label, key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.label == label && o.keys[key]
}

func (o *once) note(label, key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.label != label || o.keys == nil {
		o.label = label
		o.keys = map[string]bool{}
	}
	o.keys[key] = true
}

// forget has every key created anew.
func (o *once) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.label = ""
	o.keys = nil
}

// Take implements [strategies.Strategy].
func (s *decrExpire) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	now := s.clock.Now()
	labelled := s.windows.At(&req.Policy.Window, now)
	key := s.key(req.Subject, req.Policy, labelled.Label)

	if err := s.initialise(ctx, key, labelled.Label, req.Policy, wholeSeconds(&labelled.Span, now)); err != nil {
		return s.unanswered(ctx, err)
	}
	return s.count(ctx, req, key, &labelled.Span, now)
}

// initialise creates the count at the limit if it is not there.
func (s *decrExpire) initialise(ctx context.Context, key, label string, policy *quota.Policy, ttl time.Duration) error {
	if s.once == nil {
		return family.Wrapf(s.redis.SetNX(ctx, key, policy.Limit, ttl).Err(), "creating the count")
	}
	if s.once.done(label, key) {
		return nil
	}
	if err := s.redis.SetNX(ctx, key, policy.Limit, 0).Err(); err != nil {
		return fmt.Errorf("creating the count: %w", err)
	}
	s.once.note(label, key)
	return nil
}

// Provision implements [strategies.Provisioner]. A count that an operator sets has
// its expiry from the start.
func (s *decrExpire) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	if s.once != nil {
		defer s.once.forget() // a subject that has used nothing has no key now
	}
	return s.provision(ctx, policy, grants,
		func(pipe redis.Pipeliner, key string, used int64, span *quota.Span, now time.Time) {
			pipe.Set(ctx, key, policy.Limit-used, wholeSeconds(span, now))
		})
}

var decrLiteralMeta = family.PerWindow(strategies.Meta{
	Name:   "decr-literal",
	Counts: quota.CountsAttempts,
	About:  strategies.About{Record: ofDesignRecord("ADR-009")},
	// Nothing is promised about rejections: the count starts at 0 and not at the
	// limit, so every request may meet one.
	Guarantee: []quota.Clause{
		quota.Exactly(quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry,
			quota.FaultClock, quota.FaultEviction, quota.FaultOutage),
	},
	Down: family.WhenDown,
	Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
		return &decrLiteral{countdown{newCounter(env, linkHits), true}}, nil
	},
})

// decrLiteral is ADR-009's pseudo-code and nothing else. DECR on a missing key
// gives -1, so the first request is rejected, the result that would set the
// expiry never comes up, and the key stays forever.
//
// It is no Provisioner: whatever initialised the count would be the very step
// that the pseudo-code leaves out.
type decrLiteral struct{ countdown }

// Take implements [strategies.Strategy].
func (s *decrLiteral) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	now := s.clock.Now()
	span, key := s.current(req.Subject, req.Policy, now)
	return s.count(ctx, req, key, span, now)
}
