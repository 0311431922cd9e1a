package ttlcounter

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// counter is what the strategies of this package share: where the keys are, and
// what is said to a caller.
type counter struct {
	redis redis.UniversalClient
	clock quota.Clock
	// family begins every key: the run's prefix and what the subjects are, e.g.
	// "users:".
	family  string
	scheme  scheme
	windows *quota.Memo
	open    bool // without Redis, requests are admitted
}

// scheme is how a design record names its keys: what the subjects are, the policy
// that it is about, and how its keys call what is counted.
type scheme struct{ subjects, policy, counted string }

// The two records: users:ID:quota:2031-03 and links:CODE:hits:2031-03.
var (
	userLinks = scheme{"users", "user-links", "quota"}
	linkHits  = scheme{"links", "link-hits", "hits"}
)

func newCounter(env strategies.Env, names scheme) counter {
	return counter{
		redis: strategies.Redis(env), clock: env.Clock, family: env.Prefix + names.subjects +
			":", scheme: names, windows: new(quota.Memo),
		open: family.FailsOpen(env.Options),
	}
}

// key names a subject's counter of one window as the record does. For policies
// that the record does not name, the policy's name stands where it says what is
// counted, so that two policies of one subject do not share a counter. Neither
// that nor labels hold a colon, which keeps keys unambiguous for any subject.
func (c *counter) key(subject quota.Subject, policy *quota.Policy, label string) string {
	return c.base(subject, policy.Name) + ":" + label
}

// base is what the keys of all windows begin with.
func (c *counter) base(subject quota.Subject, policy string) string {
	return c.family + string(subject) + ":" + family.KeySegment(policy, c.scheme.policy, c.scheme.counted)
}

// current is the window that contains now, and the subject's key in it.
func (c *counter) current(subject quota.Subject, policy *quota.Policy, now time.Time) (*quota.Span, string) {
	labelled := c.windows.At(&policy.Window, now)
	return &labelled.Span, c.key(subject, policy, labelled.Label)
}

// Used implements [strategies.Viewer] for counters that count upwards.
func (c *counter) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	_, key := c.current(subject, policy, c.clock.Now())
	return family.Reading(ctx, c.redis, key, subject)
}

// provision sets the counters of the window in force; set adds the commands that
// write the counter of a subject who has used some units, with its time to live.
func (c *counter) provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant,
	set func(pipe redis.Pipeliner, key string, used int64, span *quota.Span, now time.Time)) error {
	now := c.clock.Now()
	labelled := c.windows.At(&policy.Window, now)
	return family.ProvisionCounters(ctx, c.redis, policy, grants, func(subject quota.Subject) string {
		return c.key(subject, policy, labelled.Label)
	},
		func(pipe redis.Pipeliner, key string, used int64) { set(pipe, key, used, &labelled.Span, now) })
}

// Close implements [strategies.Strategy]. There is nothing to release.
func (c *counter) Close(context.Context) error { return nil }

// unanswered is the decision if Redis gave none.
func (c *counter) unanswered(ctx context.Context, err error) (quota.Decision, error) {
	return family.Unanswered(ctx, c.clock, c.open, err)
}

// wholeSeconds is the time to live of a window's key: EXPIRE takes whole seconds,
// and a key must not go before its window does.
func wholeSeconds(span *quota.Span, now time.Time) time.Duration {
	duration := span.End.Sub(now)
	return (duration + time.Second - 1).Truncate(time.Second)
}

// countdown is a counter of what is left of the limit, as ADR-009 keeps it.
type countdown struct {
	counter
	expires bool // the caller that is answered the limit less its own units sets the expiry
}

// decrement uses the record's DECR wherever it says the same as DECRBY.
func (c *countdown) decrement(ctx context.Context, key string, units int64) (left int64, err error) {
	if units == 1 {
		return c.redis.Decr(ctx, key).Result()
	}
	return c.redis.DecrBy(ctx, key, units).Result()
}

// count takes a request off the count of the window at hand.
func (c *countdown) count(ctx context.Context, req quota.Request, key string, span *quota.Span,
	now time.Time) (quota.Decision, error) {
	left, err := c.decrement(ctx, key, req.Units)
	if err == nil && c.expires && left == req.Policy.Limit-req.Units {
		err = c.redis.Expire(ctx, key, wholeSeconds(span, now)).Err()
	}
	if err != nil {
		return c.unanswered(ctx, err)
	}
	return family.Decided(left >= 0, left, span.End, now), nil
}

// Used implements [strategies.Viewer]: what is not left has been used.
func (c *countdown) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	readings, err := c.counter.Used(ctx, subject, policy)
	if err == nil && readings[0].Known {
		readings[0].Units = policy.Limit - readings[0].Units
	}
	return readings, err
}
