package ttlcounter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// counter is what the strategies of this package share: where the keys are, and
// what is said to a caller.
type counter struct {
	redis redis.UniversalClient
	clock quota.Clock
	// family begins every key: the run's prefix and what the subjects are, e.g.
	// "users:".
	family  string
	record  record
	windows *quota.Memo
}

// record is how a design record names its keys: what the subjects are, the policy
// that it is about, and how its keys call what is counted.
type record struct{ subjects, policy, counted string }

// The two records: users:ID:quota:2031-03 and links:CODE:hits:2031-03.
var (
	userLinks = record{"users", "user-links", "quota"}
	linkHits  = record{"links", "link-hits", "hits"}
)

func newCounter(env strategies.Env, r record) counter {
	return counter{redis: strategies.Redis(env), clock: env.Clock, family: env.Prefix + r.subjects + ":", record: r, windows: new(quota.Memo)}
}

// key names a subject's counter of one window as the record does. For policies
// that the record does not name, the policy's name stands where it says what is
// counted, so that two policies of one subject do not share a counter. Neither
// that nor labels hold a colon, which keeps keys unambiguous for any subject.
func (c *counter) key(s quota.Subject, p *quota.Policy, label string) string {
	return c.family + string(s) + ":" + strategies.KeySegment(p.Name, c.record.policy, c.record.counted) + ":" + label
}

// current is the window that contains now, and the subject's key in it.
func (c *counter) current(s quota.Subject, p *quota.Policy, now time.Time) (*quota.Span, string) {
	w := c.windows.At(&p.Window, now)
	return &w.Span, c.key(s, p, w.Label)
}

// value reads a counter; known is false where the key does not exist.
func (c *counter) value(ctx context.Context, s quota.Subject, p *quota.Policy) (value int64, known bool, err error) {
	_, key := c.current(s, p, c.clock.Now())
	return c.valueAt(ctx, key, s)
}

// valueAt reads the counter at a key, which is that of s.
func (c *counter) valueAt(ctx context.Context, key string, s quota.Subject) (value int64, known bool, err error) {
	value, err = c.redis.Get(ctx, key).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("reading the counter of %s: %w", s, err)
	}
	return value, true, nil
}

// Used implements [strategies.Viewer] for counters that count upwards.
func (c *counter) Used(ctx context.Context, s quota.Subject, p *quota.Policy) ([]quota.Reading, error) {
	n, known, err := c.value(ctx, s, p)
	if err != nil {
		return nil, err
	}
	return []quota.Reading{{Tier: quota.TierRedis, Units: n, Known: known}}, nil
}

// provisionBatch is how many subjects are set up per round trip.
const provisionBatch = 1000

// provision sets the counters of the window in force; set adds the commands that
// write the counter of a subject who has used some units, with its time to live.
func (c *counter) provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant,
	set func(pipe redis.Pipeliner, key string, used int64, span *quota.Span, now time.Time)) error {
	now := c.clock.Now()
	w := c.windows.At(&p.Window, now)
	return c.provisionAt(ctx, p, grants, func(s quota.Subject) string { return c.key(s, p, w.Label) },
		func(pipe redis.Pipeliner, key string, used int64) { set(pipe, key, used, &w.Span, now) })
}

// provisionAt sets the counters at the keys of the subjects.
func (c *counter) provisionAt(ctx context.Context, p *quota.Policy, grants []strategies.Grant,
	keyOf func(quota.Subject) string, set func(pipe redis.Pipeliner, key string, used int64)) error {
	for len(grants) > 0 {
		n := min(provisionBatch, len(grants))
		pipe := c.redis.Pipeline()
		for _, g := range grants[:n] {
			if g.Limit != p.Limit {
				return fmt.Errorf("limit %d for %s: all subjects share the limit of policy %s, %d", g.Limit, g.Subject, p.Name, p.Limit)
			}
			key := keyOf(g.Subject)
			if g.Used == 0 {
				pipe.Del(ctx, key)
				continue
			}
			set(pipe, key, g.Used)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return fmt.Errorf("setting up %d subjects: %w", n, err)
		}
		grants = grants[n:]
	}
	return nil
}

// Close implements [strategies.Strategy]. There is nothing to release.
func (c *counter) Close(context.Context) error { return nil }

// failClosed is the decision where Redis gave none: reject. A caller that gave up
// has made no decision at all, whatever Redis did.
func failClosed(ctx context.Context, err error) (quota.Decision, error) {
	if ctx.Err() != nil {
		return quota.Decision{}, fmt.Errorf("asking redis: %w", err)
	}
	return quota.Decision{Tier: quota.TierProcess, Degraded: true, Remaining: -1}, nil
}

// decide is the decision that Redis made, with the units that it left.
func decide(admitted bool, remaining int64, span *quota.Span, now time.Time) quota.Decision {
	d := quota.Decision{Admitted: admitted, Tier: quota.TierRedis, Remaining: max(0, remaining)}
	if !admitted {
		d.RetryAfter = span.End.Sub(now)
	}
	return d
}

// wholeSeconds is the time to live of a window's key: EXPIRE takes whole seconds,
// and a key must not go before its window does.
func wholeSeconds(span *quota.Span, now time.Time) time.Duration {
	d := span.End.Sub(now)
	return (d + time.Second - 1).Truncate(time.Second)
}
