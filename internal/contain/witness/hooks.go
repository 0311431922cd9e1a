package witness

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/fakeredis/hooks"
)

// RedisHook returns a hook for a client of the strategy's. It may stand anywhere
// in the chain: commands that another hook keeps from the store are not counted
// if that hook comes first.
func (w *Witness) RedisHook() redis.Hook {
	return hooks.Redis(func(ctx context.Context, cmds []redis.Cmder, send func(context.Context) error) error {
		for _, cmd := range cmds {
			w.Redis(ctx, cmd)
		}
		err := send(ctx)
		for _, cmd := range cmds {
			w.Answered(cmd)
		}
		return err
	})
}

// Redis looks at one command, for runners that have a hook of their own.
func (w *Witness) Redis(ctx context.Context, cmd redis.Cmder) {
	if w != nil {
		w.look(ctx, cmd.Name, cmd.Args())
	}
}

// Tracer returns a tracer for a pool of the strategy's.
func (w *Witness) Tracer() pgx.QueryTracer { return tracer{w} }

// Statement looks at one SQL statement, for runners that have a tracer or a model
// of their own.
func (w *Witness) Statement(ctx context.Context, sql string, args []any) {
	if w != nil {
		w.look(ctx, func() string {
			name, _, _ := strings.Cut(strings.TrimSpace(sql), " ")
			return name
		}, args)
	}
}

type tracer struct{ witness *Witness }

var (
	_ pgx.QueryTracer = tracer{}
	_ pgx.BatchTracer = tracer{}
)

// TraceQueryStart implements [pgx.QueryTracer].
func (t tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn,
	traceQueryStartData pgx.TraceQueryStartData) context.Context {
	t.witness.Statement(ctx, traceQueryStartData.SQL, traceQueryStartData.Args)
	return ctx
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements [pgx.BatchTracer].
func (t tracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn,
	traceBatchStartData pgx.TraceBatchStartData) context.Context {
	for _, query := range traceBatchStartData.Batch.QueuedQueries {
		t.witness.Statement(ctx, query.SQL, query.Arguments)
	}
	return ctx
}

// TraceBatchQuery implements [pgx.BatchTracer].
func (tracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements [pgx.BatchTracer].
func (tracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
