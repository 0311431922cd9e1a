// Package jetstream is the code of queue. Programs get it by package full.
package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/consensus"
)

// The tiers that decide: the consumer, or an instance that does not wait for it.
const (
	TierQueue     quota.Tier = "queue"
	TierMeanwhile quota.Tier = "meanwhile"
)

func init() { strategies.BuildIn(codes.QueueOfCharges, open) }

// queue is one instance.
type queue struct {
	nats     *nats.Conn
	js       jetstream.JetStream
	clock    quota.Clock
	names    names
	inbox    string
	answers  *nats.Subscription
	consumer *consumer // of the first instance
	admits   bool      // meanwhile=admit

	mu      sync.Mutex // never held across anything that waits
	last    uint64
	waiting map[uint64]chan reply
	ahead   map[uint64]key // requests whose callers did not wait
	full    map[key]bool   // subjects of which the consumer has said no last

	unheard  strategies.Tally
	overruns strategies.Tally
	closing  sync.Once
	closed   error
}

var (
	_ strategies.Refunder    = (*queue)(nil)
	_ strategies.Viewer      = (*queue)(nil)
	_ strategies.Provisioner = (*queue)(nil)
	_ strategies.Meter       = (*queue)(nil)
)

func open(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
	conn, ok := env.Clients[string(consensus.NeedNATS)].(*nats.Conn)
	if !ok {
		return nil, errors.New("queue needs NATS")
	}
	stream, err := jetstream.New(conn)
	if err != nil {
		return nil, fmt.Errorf("using JetStream: %w", err)
	}
	q := &queue{
		nats: conn, js: stream, clock: env.Clock, names: newNames(env.Prefix), inbox: nats.NewInbox(),
		admits:  env.Options["meanwhile"] == consensus.MeanwhileAdmit,
		waiting: map[uint64]chan reply{}, ahead: map[uint64]key{}, full: map[key]bool{},
	}
	making, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	if _, err := stream.CreateOrUpdateStream(making, jetstream.StreamConfig{
		Name: q.names.stream, Subjects: []string{q.names.requests()}, Storage: jetstream.FileStorage,
	}); err != nil {
		return nil, fmt.Errorf("making the stream %s: %w", q.names.stream, err)
	}
	q.answers, err = conn.Subscribe(q.inbox, q.hear)
	if err != nil {
		return nil, fmt.Errorf("listening to answers: %w", err)
	}
	conn.SetDisconnectErrHandler(func(_ *nats.Conn, err error) { q.lose(err) })
	if env.Instance == 0 {
		q.consumer, err = startConsumer(making, conn, stream, env.Clock, q.names)
		if err != nil {
			return nil, errors.Join(err, q.answers.Unsubscribe())
		}
	}
	// What the server has not heard of yet could miss the first answers.
	if err := conn.FlushWithContext(making); err != nil {
		return nil, errors.Join(err, q.Close(ctx))
	}
	return q, nil
}

// Take implements [strategies.Strategy].
func (q *queue) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	policy := req.Policy
	now := q.clock.Now()
	span := policy.Window.At(now)
	k := key{policy.Name, span.Index, req.Subject}
	o := order{Verb: take, Key: k, Units: req.Units, Limit: policy.Limit}
	decision := quota.Decision{Tier: TierQueue, Reservation: quota.Reservation{Request: req, Window: span.Index}}
	if q.admits && !q.isFull(k) {
		if err := q.leave(ctx, o); err != nil {
			return quota.Decision{}, fmt.Errorf("asking for %s: %w", req.Subject, err)
		}
		decision.Admitted = true
		decision.Tier = TierMeanwhile
		decision.Remaining = -1
		return decision, nil
	}
	answer, err := q.ask(ctx, o)
	if err != nil {
		return quota.Decision{}, fmt.Errorf("asking for %s: %w", req.Subject, err)
	}
	decision.Admitted = answer.Admitted
	decision.Remaining = max(policy.Limit-answer.Used, 0)
	if !answer.Admitted {
		decision.Reservation = quota.Reservation{}
		if policy.Window.Kind.Tumbling() {
			decision.RetryAfter = span.End.Sub(now)
		}
	}
	return decision, nil
}

// Refund puts the units back by another message. It remembers nothing: a
// reservation that is refunded twice gives its units back twice. Units of a request
// that went ahead, and that the consumer turned down, were never charged; giving
// them back frees units of others.
func (q *queue) Refund(ctx context.Context, reservation quota.Reservation) error {
	req := reservation.Request
	if req.Policy == nil {
		return errors.New("refund of a reservation that no admitted request made")
	}
	_, err := q.ask(ctx, order{Verb: refund, Key: key{req.Policy.Name, reservation.Window, req.Subject}, Units: req.Units})
	if err != nil {
		return fmt.Errorf("refunding %s: %w", req.Subject, err)
	}
	return nil
}

// Used implements [strategies.Viewer].
func (q *queue) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	msg, err := q.nats.RequestWithContext(ctx, q.names.used(),
		encode(key{policy.Name, policy.Window.At(q.clock.Now()).Index, subject}))
	if err != nil {
		return nil, fmt.Errorf("asking what %s has used: %w", subject, err)
	}
	var a answer
	if err := json.Unmarshal(msg.Data, &a); err != nil {
		return nil, fmt.Errorf("asking what %s has used: %w", subject, err)
	}
	return []quota.Reading{{Tier: TierQueue, Units: a.Used, Known: a.Known}}, nil
}

// grantsPerMessage keeps messages well below the largest that NATS takes, a
// megabyte.
const grantsPerMessage = 1000

// Provision sets the counters of the window in force.
func (q *queue) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	index := policy.Window.At(q.clock.Now()).Index
	for some := range slices.Chunk(grants, grantsPerMessage) {
		counters := make(map[quota.Subject]int64, len(some))
		for _, grant := range some {
			if grant.Limit != policy.Limit {
				return fmt.Errorf("limit %d for %s: all subjects share the limit of policy %s, %d", grant.Limit, grant.Subject,
					policy.Name, policy.Limit)
			}
			counters[grant.Subject] = grant.Used
		}
		if _, err := q.ask(ctx, order{Verb: set, Key: key{Policy: policy.Name, Window: index},
			Counters: counters}); err != nil {
			return fmt.Errorf("provision %d subjects: %w", len(some), err)
		}
	}
	return nil
}

// Measures implements [strategies.Meter]. The lag is from the moment at which a
// message is in the stream until it is decided, of all messages together.
func (q *queue) Measures() []strategies.Measure {
	var decided, lag, longest int64
	if q.consumer != nil {
		decided = q.consumer.decided.Load()
		lag = q.consumer.lag.Load()
		longest = q.consumer.longest.Load()
	}
	return []strategies.Measure{
		{Name: "queue lag, sum", Unit: "ns", Value: lag},
		{Name: "queue lag, most", Unit: "ns", Value: longest, Kind: strategies.MeasureMost,
			Metric: codes.MetricQueueLag},
		{Name: "messages decided", Unit: "messages", Value: decided},
		{Name: "gone ahead", Unit: "requests", Value: q.unheard.Load()},
		{Name: "turned down afterwards", Unit: "requests", Value: q.overruns.Load()},
	}
}

// Close ends the consumer, if it is here, and hears no more answers.
func (q *queue) Close(ctx context.Context) error {
	q.closing.Do(func() {
		if q.consumer != nil {
			q.closed = q.consumer.stop(ctx)
		}
		if err := q.answers.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			q.closed = errors.Join(q.closed, err)
		}
		q.nats.SetDisconnectErrHandler(nil)
		q.js.CleanupPublisher()
		q.lose(errors.New("the instance is closed"))
	})
	return q.closed
}
