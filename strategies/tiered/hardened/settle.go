package hardened

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// Commit implements [strategies.Committer]: the request holds the actual units from
// now on.
func (in *instance) Commit(ctx context.Context, reservation quota.Reservation, actual int64) error {
	if actual == reservation.Request.Units {
		return nil
	}
	return in.settle(ctx, reservation, actual, false)
}

// Refund implements [strategies.Refunder]: the request holds nothing any more, and
// never will again.
func (in *instance) Refund(ctx context.Context, reservation quota.Reservation) error {
	return in.settle(ctx, reservation, 0, true)
}

// settle writes down in the database what a request holds, and has Redis ask it again.
// It answers once no instance rejects others by what was known before.
func (in *instance) settle(ctx context.Context, reservation quota.Reservation, held int64, closed bool) error {
	if reservation.Request.Policy == nil {
		return family.ErrNoReservation
	}
	account := reserved(&reservation)
	if closed && account.ends.IsZero() {
		account.ends = in.clock.Now() // from which the note of it may be purged in time
	}
	if err := in.source.settle(ctx, &account, reservation.Request.ID, reservation.Request.Units, held,
		closed); err != nil {
		return err
	}
	left, err := clearScript.Run(ctx, in.redis, []string{account.key(in.prefix)}).Int64()
	switch {
	case err == nil:
		return in.outwait(ctx, left)
	case family.GaveUp(ctx, in.clock):
		return fmt.Errorf("tell Redis of units that came back: %w", err)
	default:
		return nil // Redis does not answer, and forgets by itself what it believed
	}
}

// reserved is the account that a reservation was charged to.
func reserved(reservation *quota.Reservation) account {
	policy := reservation.Request.Policy
	a := account{subject: reservation.Request.Subject, policy: policy.Name, window: reservation.Window,
		limit: policy.Limit}
	if policy.Window.Kind.Tumbling() {
		a.ends = policy.Window.Span(reservation.Window).End
	}
	return a
}

// outwait waits until leases that have so many milliseconds left are over. Scripts
// cut moments to whole milliseconds, so a lease may last one longer than this
// one knows.
func (in *instance) outwait(ctx context.Context, ms int64) error {
	if ms <= 0 {
		return nil
	}
	err := in.clock.Sleep(ctx, time.Duration(ms+1)*time.Millisecond)
	return family.Wrapf(err, "wait for instances to forget a rejection")
}

// provisionBatch bounds the scripts of one pipeline.
const provisionBatch = 1_000

// Provision implements [strategies.Provisioner]: it sets limits and what has been used
// in the window in force, and drops the credit of before. If it is called amid
// requests, use is what the operator says. It answers once no instance rejects by
// what was known before.
func (in *instance) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	account := accountAt(policy, "", in.clock.Now())
	if err := in.source.provision(ctx, &account, grants); err != nil {
		return fmt.Errorf("provision %d agents: %w", len(grants), err)
	}
	names := make([]quota.Subject, len(grants))
	for i, grant := range grants {
		names[i] = grant.Subject
	}
	return in.each(ctx, forgetScript, account, names)
}

// SetLimit implements [strategies.LimitSetter]. It answers once no instance rejects by
// the limit of before. Credit that Redis drew under a higher limit can still be used.
func (in *instance) SetLimit(ctx context.Context, policy *quota.Policy, subjects []quota.Subject) error {
	if err := in.source.setLimit(ctx, policy.Name, subjects, policy.Limit); err != nil {
		return err
	}
	return in.each(ctx, clearScript, accountAt(policy, "", in.clock.Now()), subjects)
}

// each runs a script on the account of each agent, and waits as long as one of them
// says that instances may still reject by what was known before.
func (in *instance) each(ctx context.Context, script *redis.Script, a account, agents []quota.Subject) error {
	var longest int64
	for batch := range slices.Chunk(agents, provisionBatch) {
		pipe := in.redis.Pipeline()
		left := make([]*redis.Cmd, len(batch))
		for i, subject := range batch {
			a.subject = subject
			left[i] = script.EvalSha(ctx, pipe, []string{a.key(in.prefix)})
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return fmt.Errorf("have Redis forget what %d agents had left: %w", len(batch), err)
		}
		for _, cmd := range left {
			ms, err := cmd.Int64()
			if err != nil {
				return fmt.Errorf("have Redis forget what an agent had left: %w", err)
			}
			longest = max(longest, ms)
		}
	}
	return in.outwait(ctx, longest)
}

// Used implements [strategies.Viewer]: what the database was charged for without the
// credit that Redis holds. The two are read one after the other.
func (in *instance) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	account := accountAt(policy, subject, in.clock.Now())
	credit, err := in.redis.HGet(ctx, account.key(in.prefix), "credit").Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("read the credit of %s: %w", subject, err)
	}
	drawn, known, err := in.source.drawn(ctx, &account)
	if err != nil {
		return nil, fmt.Errorf("read what was drawn for %s: %w", subject, err)
	}
	if !known {
		return []quota.Reading{{Tier: in.source.tier()}}, nil
	}
	return []quota.Reading{{Tier: in.source.tier(), Units: drawn - credit, Known: true}}, nil
}

// Jobs implements [strategies.Jobber].
func (in *instance) Jobs() []strategies.Job {
	jobs := []strategies.Job{{Name: "purge", Singleton: true, Every: purgeEvery,
		Run: func(ctx context.Context) (bool, error) {
			return in.source.purge(ctx, in.clock.Now().Add(-purgeAfter))
		}}}
	if in.region != "" {
		jobs = append(jobs, strategies.Job{Name: "recall", Every: in.every, Run: in.recallJob})
	}
	return jobs
}

// Measures implements [strategies.Meter].
func (in *instance) Measures() []strategies.Measure {
	return []strategies.Measure{
		{Name: "filter hits", Unit: "checks", Value: in.leases.hits.Load(), Metric: codes.MetricFilterHits},
		{Name: "false positives", Unit: "checks", Value: in.leases.falsePositives.Load(),
			Metric: codes.MetricFalsePositives},
		{Name: "filter size", Unit: "bytes", Value: in.leases.bytes(), Kind: strategies.MeasureLevel},
		{Name: "leases", Unit: "accounts", Value: in.leases.members(), Kind: strategies.MeasureLevel},
		{Name: "cache lookups", Unit: "scripts", Value: in.asked.Load()},
		{Name: "draws", Unit: "statements", Value: in.drawn.Load()},
		{Name: "waits for a draw", Unit: "waits", Value: in.waited.Load()},
		{Name: "credit returned", Unit: "units", Value: in.returned.Load()},
		{Name: "credit lost", Unit: "units", Value: in.stale.Load()},
		{Name: "decided without Redis", Unit: "checks", Value: in.alone.Load()},
	}
}

// Close implements [strategies.Strategy]. There is nothing to release: all credit is
// in Redis, where other instances take it.
func (in *instance) Close(context.Context) error { return nil }
