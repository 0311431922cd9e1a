package harness_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// slowHistory is one whose judgement takes until it is told to end.
type slowHistory struct {
	begun, end chan struct{}
	closed     chan struct{}
	visited    atomic.Int64
}

func (h *slowHistory) Judge(_ oracle.Config, visit ...oracle.Visitor) (oracle.Verdict, error) {
	close(h.begun)
	<-h.end
	for _, see := range visit {
		if err := see([]oracle.Event{{Kind: oracle.Take}}); err != nil {
			return oracle.Verdict{}, err
		}
		h.visited.Add(1)
	}
	return oracle.Verdict{}, nil
}

func (h *slowHistory) Subjects() iter.Seq2[[]oracle.Event, error] {
	return func(func([]oracle.Event, error) bool) {}
}

func (h *slowHistory) Close() error {
	close(h.closed)
	return nil
}

// TestJudgementIsGivenUp: the run keeps what its callers counted, says that it was not
// judged, and its history is closed once the judgement has noticed.
func TestJudgementIsGivenUp(t *testing.T) {
	h := &slowHistory{begun: make(chan struct{}), end: make(chan struct{}), closed: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-h.begun
		cancel()
	}()
	run := results.Run{Audit: results.Audit{Valid: true}}
	policy := quota.Policy{Limit: 5}
	_, err := harness.Judge(ctx, &run,
		&harness.Facts{Plan: &harness.Plan{}, Policy: &policy, History: h, Counts: harness.Counts{Admitted: 3, Rejected: 4}})
	if !errors.Is(err, harness.ErrNotJudged) {
		t.Fatal(err)
	}
	if run.Audit.Valid || !run.Partial || run.Issued != 7 || len(run.Audit.Reasons) != 1 ||
		run.Audit.Reasons[0].Code != "not-judged" {
		t.Errorf("%+v", run)
	}
	close(h.end)
	<-h.closed
	if n := h.visited.Load(); n != 0 {
		t.Errorf("the judgement went on for %d visitors", n)
	}
	if run.Issued != 7 || len(run.Audit.Reasons) != 1 {
		t.Errorf("the judgement that was given up changed the run: %+v", run)
	}
}
