package window

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// The faults that leave Redis' own count as high as it should be or higher, and
// with them those that make a caller count in its own process instead. A key that
// is lost begins its window anew, and so does a command that comes when its
// window's key has expired: neither eviction nor the clock is tolerated. A process that
// counts for itself forgets its count when it crashes, and its next life counts anew.
var (
	counted  = []quota.Fault{quota.FaultCrash, quota.FaultRetry, quota.FaultLimit}
	fellBack = []quota.Fault{quota.FaultRetry, quota.FaultLostReply, quota.FaultOutage, quota.FaultLimit}
)

var fixedMeta = strategies.Meta{
	Name:      "fixed-window",
	Needs:     []strategies.Need{strategies.NeedRedis},
	Kinds:     kinds,
	Counts:    quota.CountsAttempts,
	Options:   []quota.Option{{Name: "multi", Type: "bool", Default: "true"}, family.Both},
	TwoQuotas: true,
	About: strategies.About{Record: []quota.Clause{
		leak(tumbling, "L", nil, family.None).From("ProjectEPU", "the limit of a fixed window, shared by all instances"),
	}},
	Guarantee: []quota.Clause{
		leak(tumbling, "L", counted, family.None),
		leak(rolling, "2 L", counted, func(params quota.Params) int64 { return params.Limit }),
		// A deque never holds more than L of any one length of time, and there is one
		// in each process.
		leak(tumbling, "L + instances x L", fellBack,
			func(params quota.Params) int64 { return params.Instances * params.Limit }),
		leak(rolling, "2 L + instances x L", fellBack,
			func(params quota.Params) int64 { return (1 + params.Instances) * params.Limit }),
		// That holds for a rolling window too, which contains all that the numbered one
		// has admitted so far.
		family.RoomForSingleUnits,
	},
	Open: func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
		window := &fixedWindow{redis: strategies.Redis(env), clock: env.Clock, prefix: env.Prefix,
			fallback: newDeques(env.Clock)}
		window.pipeline = strategies.Redis(env).Pipeline
		if env.Options.Bool("multi") {
			window.pipeline = strategies.Redis(env).TxPipeline
		}
		window.together = family.Together(env.Options)
		if window.together {
			return window, family.Load(ctx, window.redis, bothScript)
		}
		return window, nil
	},
}

var bothScript = family.Script(files, "both.lua")

var (
	tumbling = []quota.Kind{quota.Fixed, quota.CalendarHour}
	rolling  = []quota.Kind{quota.Rolling}
)

// leak is a clause about windows of some kinds.
func leak(kinds []quota.Kind, formula string, tolerates []quota.Fault, over func(quota.Params) int64) quota.Clause {
	return quota.Clause{
		Property: quota.PropertyLeak, Kinds: kinds, Tolerates: tolerates, Formula: formula, Bound: over,
	}
}

// fixedWindow is ProjectEPU's general limiter. Rolling windows are approximated
// by numbered ones of the same length, as the record plans it for its login.
type fixedWindow struct {
	redis    redis.UniversalClient
	pipeline func() redis.Pipeliner
	clock    quota.Clock
	prefix   string
	fallback *deques
	together bool
}

// Take implements [strategies.Strategy].
func (s *fixedWindow) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	return family.Charge(req, s.together, func(reqs ...quota.Request) (quota.Decision, error) {
		if len(reqs) > 1 {
			return s.both(ctx, reqs)
		}
		return s.one(ctx, reqs[0])
	})
}

// both charges a request to both of its quotas, or to neither. Without Redis, the process asks
// its deques one after the other.
func (s *fixedWindow) both(ctx context.Context, reqs []quota.Request) (quota.Decision, error) {
	now := s.clock.Now()
	var keys []string
	var ends []time.Time
	args := []any{reqs[0].Units}
	for _, request := range reqs {
		span := numbered(request.Policy.Window).At(now)
		keys = append(keys, s.key(request.Subject, request.Policy, span.Index))
		ends = append(ends, span.End)
		args = append(args, request.Policy.Limit, int64(timeToLive(request.Policy.Window)/time.Second))
	}
	res, err := family.Numbers(bothScript.Run(ctx, s.redis, keys, args...), 2)
	switch {
	case err == nil:
	case ctx.Err() != nil || strategies.IsCrossSlot(err):
		return quota.Decision{}, fmt.Errorf("asking redis: %w", err)
	default:
		return family.Charge(reqs[0], false, func(requests ...quota.Request) (quota.Decision, error) {
			return s.alone(requests[0]), nil
		})
	}
	decision := quota.Decision{Tier: quota.TierRedis, Admitted: res[0] == 0, BySecond: res[0] == 2,
		Remaining: max(0, reqs[0].Policy.Limit-res[1])}
	if !decision.Admitted {
		decision.RetryAfter = ends[res[0]-1].Sub(now)
	}
	return decision, nil
}

// one asks one quota.
func (s *fixedWindow) one(ctx context.Context, req quota.Request) (quota.Decision, error) {
	policy := req.Policy
	now := s.clock.Now()
	span := numbered(policy.Window).At(now)
	key := s.key(req.Subject, policy, span.Index)

	pipe := s.pipeline()
	count := family.Increment(ctx, pipe, key, req.Units)
	pipe.Expire(ctx, key, timeToLive(policy.Window))
	if _, err := pipe.Exec(ctx); err != nil {
		if ctx.Err() != nil { // no caller waits for a decision any more
			return quota.Decision{}, fmt.Errorf("asking redis: %w", err)
		}
		return s.alone(req), nil
	}
	return family.Decided(count.Val() <= policy.Limit, policy.Limit-count.Val(), span.End, now), nil
}

// alone is the decision of the process by itself.
func (s *fixedWindow) alone(req quota.Request) quota.Decision {
	decision := s.fallback.take(req)
	decision.Degraded = true
	return decision
}

// Used implements [strategies.Viewer]. It is Redis' count: what a process has
// admitted by itself is never added to it.
func (s *fixedWindow) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	return family.Reading(ctx, s.redis, s.key(subject, policy, numbered(policy.Window).At(s.clock.Now()).Index), subject)
}

// Provision implements [strategies.Provisioner]: it sets the counters of the
// window in force.
func (s *fixedWindow) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	index := numbered(policy.Window).At(s.clock.Now()).Index
	return family.ProvisionCounters(ctx, s.redis, policy, grants, func(subject quota.Subject) string {
		return s.key(subject, policy, index)
	},
		func(pipe redis.Pipeliner, key string, used int64) {
			pipe.Set(ctx, key, used, timeToLive(policy.Window))
		})
}

// Close implements [strategies.Strategy]. There is nothing to release.
func (s *fixedWindow) Close(context.Context) error { return nil }

// key names a subject's counter of one window: the record's base key and index.
// The base key begins with the use, "contact" for the contact form; for policies
// that the record does not name, the policy's name stands there. Neither holds a
// colon, and the index is a number, so keys are unambiguous for any subject.
func (s *fixedWindow) key(subject quota.Subject, policy *quota.Policy, index int64) string {
	return s.prefix + family.KeySegment(policy.Name, "contact-form", "contact") + ":" + string(subject) + ":" +
		strconv.FormatInt(index, 10)
}

// numbered is the tumbling window of that length; a rolling one is approximated
// by windows that follow each other from the epoch.
func numbered(window quota.Window) quota.Window {
	if window.Kind == quota.Rolling {
		window.Kind = quota.Fixed
	}
	return window
}

// grace is how much longer than its window a key lives, in policy time.
const grace = 5 * time.Second

// timeToLive is that of a key from each call on. Its window passes as fast as the
// policy's time does; EXPIRE takes whole seconds, so it may be a second more.
func timeToLive(window quota.Window) time.Duration {
	duration := window.Timeline.Scale(length(window) + grace)
	return (duration + time.Second - 1).Truncate(time.Second)
}
