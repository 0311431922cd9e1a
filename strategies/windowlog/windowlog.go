package windowlog

import (
	"context"
	"fmt"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// ofRecord is what ProjectEPU says of its e-mails and guest messages.
var ofRecord = []quota.Clause{quota.Exactly().From("ProjectEPU: one e-mail at most in a rolling hour, three messages in ten minutes")}

func init() {
	family.Register(files, meta(strategies.Meta{
		Name: "sql-window-log",
		// Of the admitted requests of a window take the one that counts last. It leaves
		// room for itself, and a row that it does not see is of a caller that was in
		// flight with it. A row too many, of a repeated or unanswered INSERT, rejects.
		Guarantee: []quota.Clause{{
			Property:  quota.PropertyLeak,
			Tolerates: []quota.Fault{quota.FaultCrash, quota.FaultLostReply, quota.FaultRetry, quota.FaultOutage, quota.FaultLimit},
			Formula:   "L + in flight - 1",
			Bound:     func(p quota.Params) int64 { return max(p.InFlight-1, 0) },
		}},
		Open: func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
			l, err := openLog(ctx, env)
			return &windowLog{l}, err
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
