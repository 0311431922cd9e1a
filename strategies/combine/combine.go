package combine

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

var takeScript = family.Script(files, "take.lua")

// late is what take.lua answers if the window's counter is gone.
const late = "late"

// The values of the option lost.
const (
	lostError = "error"
	lostAgain = "again"
)

const (
	// grace is how long a counter outlives its window, by Redis' clock: room for slow
	// requests, and for an application's clock that is behind Redis'.
	grace = 5 * time.Second
	// remembered is how long Redis knows the answer to an instance's last batch. That must
	// be longer than a client takes to give up on a reply.
	remembered = time.Minute
	// mostTries is how often a batch is sent at most with lost=again.
	mostTries = 3
)

var meta = family.PerWindow(strategies.Meta{
	Name:   "combine",
	Counts: quota.CountsAdmitted, SharesMemory: true,
	Options: []quota.Option{{Name: "lost", Default: lostError, Values: []string{lostError, lostAgain}}},
	Guarantee: []quota.Clause{
		quota.Exactly(quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry,
			quota.FaultClock, quota.FaultOutage, quota.FaultLimit),
		family.NoFalseReject(quota.FaultLimit), // in an outage, the replies of batches that are under way get lost
		{
			// What is charged for a batch whose reply got lost, or charged twice as a client library
			// repeats a command, is room that nobody gets, unless Redis knows the batch.
			Property:  quota.PropertyFalseReject,
			Tolerates: []quota.Fault{quota.FaultLostReply, quota.FaultRetry, quota.FaultOutage, quota.FaultLimit},
			Formula:   "0; lost=error: any",
			Bound: func(params quota.Params) int64 {
				if params.Options["lost"] == lostAgain {
					return 0
				}
				return quota.Unbounded
			},
		},
	},
	Open: open,
})

// combine is a counter for each subject, policy and window, which one script changes for
// several callers at a time.
type combine struct {
	redis   redis.UniversalClient
	clock   quota.Clock
	prefix  string
	windows *quota.Memo
	again   bool
	name    string // of the instance, for what Redis remembers; empty for lost=error

	// mu is never held across anything that waits, so a scheduler need not know.
	mu     sync.Mutex
	queues map[family.Account]*queue
	number int64 // of the last batch

	batches, largest, repeats, lost, lostCallers, left strategies.Tally
}

func open(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
	s := &combine{
		redis: strategies.Redis(env), clock: env.Clock, prefix: env.Prefix + "combine:{", windows: new(quota.Memo),
		again: env.Options["lost"] == lostAgain, queues: map[family.Account]*queue{},
	}
	if s.again {
		s.name = strconv.FormatUint(env.Rand.Uint64(), 36)
	}
	return s, family.Load(ctx, s.redis, takeScript)
}

// Take implements [strategies.Strategy].
func (s *combine) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	if err := ctx.Err(); err != nil {
		return quota.Decision{}, fmt.Errorf("take for %s: %w", req.Subject, err)
	}
	queue, caller := s.join(ctx, req)
	defer s.leave(req, queue, caller)
	if caller.turn != nil {
		err := caller.turn.Wait(ctx)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil && s.gaveUp(caller) {
			return quota.Decision{}, fmt.Errorf("wait for the answer to %s: %w", req.Subject, err)
		}
	}
	if caller.state == sends {
		s.send(ctx, queue, req)
	}
	return caller.decision, caller.err
}

// errEnded is what the others of a batch are told if its sender is killed, or panics.
var errEnded = fmt.Errorf("the caller who sent the batch ended before the reply: %w", strategies.ErrPrescribed)

// send sends the next batch, of which the caller is the first.
func (s *combine) send(ctx context.Context, q *queue, req quota.Request) {
	batch, number := s.depart(q)
	var r *reply
	err := errEnded
	defer func() { s.arrive(q, batch, r, err) }()
	ctx, cancel := s.shared(ctx, batch)
	defer cancel()
	r, err = s.ask(ctx, batch, number, req)
	if err != nil {
		err = fmt.Errorf("take for %s, in a batch of %d: %w", req.Subject, len(batch), err)
	}
}

// reply is what Redis said about a batch.
type reply struct {
	numbers []int64 // as take.lua has them; nil if Redis would not say
	limit   int64
	left    time.Duration // of the window
}

// ask has Redis decide on a batch. A late batch is asked once more, for the window that is
// current by then.
func (s *combine) ask(ctx context.Context, batch []*caller, number int64, req quota.Request) (*reply, error) {
	for range 2 {
		now := s.clock.Now()
		labelled := s.windows.At(&req.Policy.Window, now)
		keys := []string{s.key(req.Subject, req.Policy, labelled.Label)}
		args := []any{batch[0].limit, labelled.End.Add(grace).UnixMilli()}
		if s.again {
			keys = append(keys, keys[0]+":"+s.name)
			// The ID tells it from a batch of an earlier life of the instance.
			args = append(args, fmt.Sprintf("%d.%d", number, batch[0].id), remembered.Milliseconds())
		}
		for _, caller := range batch {
			args = append(args, caller.units)
		}
		answer, err := s.call(ctx, keys, args)
		if err != nil {
			return nil, err
		}
		if answer == late {
			continue
		}
		numbers, err := parse(answer, len(batch))
		return &reply{numbers, batch[0].limit, labelled.End.Sub(now)}, err
	}
	// Our clock is behind Redis' by more than the grace, so Redis will not say.
	return &reply{}, nil
}

// call runs the script, again and again if a batch that gets no reply may be sent again.
func (s *combine) call(ctx context.Context, keys []string, args []any) (answer string, err error) {
	for try := 1; ; try++ {
		answer, err = takeScript.Run(ctx, s.redis, keys, args...).Text()
		if err == nil || !s.again || try == mostTries || ctx.Err() != nil {
			return answer, err
		}
		s.repeats.Add(1)
	}
}

// parse reads n numbers.
func parse(answer string, n int) ([]int64, error) {
	numbers := make([]int64, 0, n)
	for text := range strings.SplitSeq(answer, " ") {
		x, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("take.lua answered %q: %w", answer, err)
		}
		numbers = append(numbers, x)
	}
	if len(numbers) != n {
		return nil, fmt.Errorf("take.lua answered %q to %d requests", answer, n)
	}
	return numbers, nil
}

// decision is that on request i of the batch.
func (r *reply) decision(i int) quota.Decision {
	if r.numbers == nil {
		return quota.Decision{Tier: quota.TierProcess, Degraded: true, Remaining: -1}
	}
	n := r.numbers[i]
	if n >= 0 {
		return quota.Decision{Admitted: true, Tier: quota.TierRedis, Remaining: max(0, r.limit-n)}
	}
	return quota.Decision{Tier: quota.TierRedis, Remaining: max(0, r.limit+n+1), RetryAfter: r.left}
}

// key names a subject's counter of one window. All keys that a call names have one hash tag,
// and a counter's ends with it.
func (s *combine) key(subject quota.Subject, policy *quota.Policy, label string) string {
	return s.prefix + policy.Name + ":" + label + ":" + string(subject) + "}"
}

// Used implements [strategies.Viewer].
func (s *combine) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	return family.Reading(ctx, s.redis, s.key(subject, policy, s.windows.At(&policy.Window, s.clock.Now()).Label), subject)
}

// Provision implements [strategies.Provisioner].
func (s *combine) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	labelled := s.windows.At(&policy.Window, s.clock.Now())
	return family.ProvisionCounters(ctx, s.redis, policy, grants, func(subject quota.Subject) string {
		return s.key(subject, policy, labelled.Label)
	},
		func(pipe redis.Pipeliner, key string, used int64) {
			pipe.Set(ctx, key, used, 0)
			pipe.PExpireAt(ctx, key, labelled.End.Add(grace))
		})
}

// Measures implements [strategies.Meter].
func (s *combine) Measures() []strategies.Measure {
	return []strategies.Measure{
		{Name: "batches", Unit: "batches", Value: s.batches.Load()},
		{Name: "largest-batch", Unit: "requests", Value: s.largest.Load(), Kind: strategies.MeasureMost},
		{Name: "repeats", Unit: "batches", Value: s.repeats.Load()},
		{Name: "lost-batches", Unit: "batches", Value: s.lost.Load()},
		{Name: "lost-requests", Unit: "requests", Value: s.lostCallers.Load()},
		{Name: "left-while-sent", Unit: "requests", Value: s.left.Load()},
	}
}

// Close implements [strategies.Strategy]. Nothing runs between two calls.
func (s *combine) Close(context.Context) error { return nil }
