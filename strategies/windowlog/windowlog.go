package windowlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// ofDesignRecord is what ProjectEPU says of its e-mails and guest messages.
var ofDesignRecord = []quota.Clause{
	quota.Exactly().From("ProjectEPU", "one e-mail at most in a rolling hour, three messages in ten minutes"),
}

func init() {
	family.Register(files, meta(strategies.Meta{
		Name: "sql-window-log",
		// Of the admitted requests of a window take the one that counts last. It leaves
		// room for itself, and a row that it does not see is of a caller that was in
		// flight with it. A row too many, of a repeated or unanswered INSERT, rejects.
		Guarantee: []quota.Clause{{
			Property: quota.PropertyLeak,
			Tolerates: []quota.Fault{quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry, quota.FaultOutage,
				quota.FaultLimit},
			Formula: "L + in flight - 1",
			Bound:   func(params quota.Params) int64 { return max(params.Deciding-1, 0) },
		}},
		Open: func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
			log, err := openLog(ctx, env)
			return &windowLog{log}, err
		},
	}))
}

// windowLog is one instance of sql-window-log.
type windowLog struct{ log }

// Take implements strategies.Strategy: one statement for a rejection, two if the
// request is admitted.
func (l *windowLog) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	// The moment is looked at once there is a connection: while a caller waits for
	// one, rows grow old and others are added.
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return quota.Decision{}, fmt.Errorf("wait for a connection: %w", err)
	}
	defer conn.Release()
	return look(req.Policy, l.clock.Now()).admit(ctx, conn, req)
}

// The values of the option by.
const (
	byLock         = "lock"
	bySerializable = "serializable"
)

func init() {
	family.Register(files, meta(strategies.Meta{
		Name:    "sql-window-log-atomic",
		Options: []quota.Option{{Name: "by", Values: []string{byLock, bySerializable}, Default: byLock}},
		Guarantee: []quota.Clause{
			// A row that its caller never heard of takes the place of one that is heard of.
			quota.Exactly(quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry, quota.FaultOutage, quota.FaultLimit),
			family.NoFalseReject(),
		},
		Open: func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
			log, err := openLog(ctx, env)
			a := &atomicLog{log: log}
			if env.Options["by"] == bySerializable {
				a.isolation.IsoLevel = pgx.Serializable
			}
			return a, err
		},
	}))
}

// atomicLog is one instance of sql-window-log-atomic.
type atomicLog struct {
	log
	// isolation is serializable if there is no lock, and the server's otherwise.
	isolation               pgx.TxOptions
	locked, waited, retries strategies.Tally
}

// Take implements strategies.Strategy: four statements for a rejection and five
// if the request is admitted, again for each time that the transaction is ended
// for a conflict.
func (l *atomicLog) Take(ctx context.Context, req quota.Request) (decision quota.Decision, err error) {
	for {
		err = pgx.BeginTxFunc(ctx, l.pool, l.isolation, func(tx pgx.Tx) error {
			decision, err = l.admit(ctx, tx, req)
			return err
		})
		switch {
		case err == nil:
			return decision, nil
		case !conflict(err) || ctx.Err() != nil:
			return quota.Decision{}, err
		}
		l.retries.Add(1)
	}
}

// admit looks at the clock once no other transaction can add a row that this one
// would see: rows that are younger than the moment of its decision would count for
// a window that they are not in.
func (l *atomicLog) admit(ctx context.Context, tx pgx.Tx, req quota.Request) (quota.Decision, error) {
	if err := l.exclude(ctx, tx, req); err != nil {
		return quota.Decision{}, err
	}
	return look(req.Policy, l.clock.Now()).admit(ctx, tx, req)
}

// exclude takes the subject's lock. Without one it has the transaction take its
// snapshot, which its first statement does.
func (l *atomicLog) exclude(ctx context.Context, tx pgx.Tx, req quota.Request) error {
	if l.isolation.IsoLevel == pgx.Serializable {
		_, err := tx.Exec(ctx, "SELECT 1")
		return family.Wrapf(err, "take a snapshot")
	}
	begun := l.clock.Now()
	_, err := tx.Exec(ctx, sqlLock, string(req.Subject), req.Policy.Name)
	l.waited.Since(begun, l.clock)
	l.locked.Add(1)
	return family.Wrapf(err, "lock the subject")
}

// conflict reports whether PostgreSQL has ended a transaction for another one's
// sake: it could not be serialized, or was part of a deadlock.
func conflict(err error) bool {
	pgError, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pgError.Code == "40001" || pgError.Code == "40P01")
}

// Measures implements strategies.Meter. The wait for a lock contains the round trip
// of the statement that takes it.
func (l *atomicLog) Measures() []strategies.Measure {
	return []strategies.Measure{
		{Name: "retries", Unit: "retries", Value: l.retries.Load()},
		{Name: "subject locks", Unit: "locks", Value: l.locked.Load()},
		{Name: "lock wait", Unit: "us", Value: l.waited.Load() / int64(time.Microsecond)},
	}
}
