package harness

import (
	"context"
	"time"

	"github.com/quotabench/quotabench/internal/cancel"
	"github.com/quotabench/quotabench/workloads"
)

// judgeGrace is how long the judgement of a run may go on after the context ended that
// the run was started with.
const judgeGrace = 700 * time.Millisecond

// NewStreamUnless is [Plan.NewStream], given up when ctx is done: a trace may come from
// a pipe that never ends, and a schedule may be long.
func (p *Plan) NewStreamUnless(ctx context.Context, round int) (workloads.Stream, workloads.Info, error) {
	type made struct {
		stream workloads.Stream
		info   workloads.Info
	}
	plan := *p // which is its caller's again afterwards
	m, err := cancel.Call(ctx, func() (made, error) {
		stream, info, err := plan.NewStream(round)
		return made{stream, info}, err
	})
	return m.stream, m.info, err
}

// Judging is a context for what follows a run: it ends [judgeGrace] after ctx does.
// The function that it returns frees it.
func Judging(ctx context.Context) (context.Context, context.CancelFunc) {
	judging, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(judgeGrace, end) })
	return judging, func() {
		stop()
		end()
	}
}
