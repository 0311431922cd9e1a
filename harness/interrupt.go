package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/quotabench/quotabench/internal/cancel"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/workloads"
)

// judgeGrace is how long the judgement of a run may go on after the context ended that
// the run was started with.
const judgeGrace = 700 * time.Millisecond

// ErrNotJudged is the error of a judgement that was given up.
var ErrNotJudged = errors.New("the run was not judged")

// NewStreamUnless is [Plan.NewStream], given up when ctx is done: a trace may come from
// a pipe that never ends, and a schedule may be long.
func NewStreamUnless(ctx context.Context, p *Plan, round int) (workloads.Stream, workloads.Info, error) {
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

// Judge turns a finished run into its correctness figures: leak, false rejects,
// drift, guarantees, and the audit's findings on all of them. Timings and costs
// are the runner's. Visitors see the history in the same pass. An error means that
// the history could not be read.
//
// It is given up with [ErrNotJudged] when ctx is done: the run is
// then partial, has an audit that says so, and is otherwise as it was. The judgement
// goes on by itself, with what visitors look at, and closes the history in the end.
func Judge(ctx context.Context, run *results.Run, f *Facts, visitors ...visitor) (oracle.Verdict, error) {
	type judged struct {
		verdict oracle.Verdict
		run     results.Run
	}
	own := *run
	own.Audit.Reasons, own.Guarantee = slices.Clone(run.Audit.Reasons), slices.Clone(run.Guarantee)
	given := make(chan bool, 1) // whether it was given up
	j, err := cancel.Call(ctx, func() (judged, error) {
		v, err := judge(&own, f, ctx.Err, visitors)
		go func() {
			if c, ok := f.History.(io.Closer); ok && <-given {
				_ = c.Close() // its file is of no use to anyone
			}
		}()
		return judged{v, own}, err
	})
	up := ctx.Err() != nil && errors.Is(err, ctx.Err())
	given <- up
	if up {
		f.Counts.record(run)
		run.Partial = true
		run.Audit.Discard("not-judged", results.DiscardsCorrectness, fmt.Sprintf(
			"the run was ended, and its %s requests could not be judged within %v: leak, false rejects and drift are unknown",
			format.Count(run.Issued), judgeGrace))
		return oracle.Verdict{}, ErrNotJudged
	}
	if err != nil {
		return j.verdict, err
	}
	*run = j.run
	return j.verdict, nil
}
