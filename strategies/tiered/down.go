package tiered

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// errMalformed marks what a store answered, but not as it should have: nothing
// that asking another store would mend.
var errMalformed = errors.New("not as it should be")

// sourceError is one of the database of record. Any other that a check meets
// comes from Redis, or is errMalformed.
type sourceError struct{ error }

func (e sourceError) Unwrap() error { return e.error }

func fromSource(err error) error {
	return sourceError{fmt.Errorf("ask the database of record: %w", err)}
}

// outage reports whether err means that a store could not do its work, rather
// than that it answered wrongly or that the caller gave up.
func (in *instance) outage(ctx context.Context, err error) bool {
	answered := errors.Is(err, errMalformed) || errors.Is(err, errNoAgent) || errors.Is(err, strategies.ErrPrescribed)
	return !answered && !family.GaveUp(ctx, in.clock)
}

// redisFailed reports whether a check ended in an error of Redis' client.
func (in *instance) redisFailed(ctx context.Context, err error) bool {
	return err != nil && !isSource(err) && in.outage(ctx, err)
}

func isSource(err error) bool {
	return errors.As(err, new(sourceError))
}

// unreachable reports whether Redis did not answer at all: an error that it
// answered with is none of its connection.
func unreachable(err error) bool {
	return !errors.As(err, new(redis.Error))
}

// check decides by the cache, and in the way of the option "down" if a store
// is missing.
func (in *instance) check(ctx context.Context, u *use, req quota.Request) (quota.Decision, error) {
	decision, err := in.checkCache(ctx, u, req)
	if err == nil {
		return decision, nil
	}
	switch in.down {
	case downUnified:
		return in.unified(ctx, u, req, err)
	case downService:
		return in.service(ctx, u, req, err)
	default:
		return in.prose(ctx, u, req, err)
	}
}

// prose asks the function in the database if Redis is missing, and admits
// if the last store that could decide is gone.
func (in *instance) prose(ctx context.Context, u *use, req quota.Request, err error) (quota.Decision, error) {
	if in.redisFailed(ctx, err) {
		hasRoom, sourceErr := in.reads.check(ctx, u, req.Subject)
		if sourceErr == nil {
			return quota.Decision{Admitted: hasRoom, Tier: in.source.tier(), Degraded: true, Remaining: -1}, nil
		}
		err = fromSource(sourceErr)
	}
	if in.outage(ctx, err) {
		return failOpen(), nil
	}
	return quota.Decision{}, err
}

// unified is the record's unified listing. Redis' errors are caught if it
// could not be reached; the statements that follow are those of a miss and write
// to Redis, whose error is not caught this time. Errors of the database are
// caught here, whatever they are, but not on a miss with Redis there.
func (in *instance) unified(ctx context.Context, u *use, req quota.Request, err error) (quota.Decision, error) {
	if !in.redisFailed(ctx, err) || !unreachable(err) {
		return quota.Decision{}, err
	}
	decision, err := in.checkSource(ctx, u, req)
	switch {
	case err == nil:
		decision.Degraded = true
		return decision, nil
	case isSource(err) && !errors.Is(err, errNoAgent) && !family.GaveUp(ctx, in.clock):
		return failOpen(), nil
	default:
		return quota.Decision{}, err
	}
}

// service is the listing of the record's service: any error of Redis leads to
// the database, and nothing fails open. It calls a check of the database that it
// does not show; the only one that the record has writes to Redis.
func (in *instance) service(ctx context.Context, u *use, req quota.Request, err error) (quota.Decision, error) {
	if !in.redisFailed(ctx, err) {
		return quota.Decision{}, err
	}
	decision, err := in.checkSource(ctx, u, req)
	decision.Degraded = err == nil
	return decision, err
}

// failOpen admits without having asked any tier.
func failOpen() quota.Decision {
	return quota.Decision{Admitted: true, Tier: quota.TierProcess, Degraded: true, Remaining: -1}
}
