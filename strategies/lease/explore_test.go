package lease

import (
	"context"
	"testing"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// TestSchedules: callers that share an instance, and instances that share a limit, never
// admit more together, also if callers end in the middle of a draw; and nobody waits for ever.
func TestSchedules(t *testing.T) {
	testenv.Sequential(t)
	always := []explore.Property{explore.Leak, explore.Guarantee, explore.Stuck, explore.TTL, explore.Negative}
	counts := append(always[:len(always):len(always)], explore.Drift, explore.Stranded)
	for _, c := range []struct {
		options   string
		scripts   string
		instances int
		limit     int64
		faults    []quota.Fault
		wanted    []explore.Property
	}{
		{"", "take,take;take=2,take", 1, 5, nil, counts},
		{"", "take,take;take", 2, 4, nil, counts},
		{"", "take;take", 1, 5, []quota.Fault{quota.FaultCrash}, always},
		{"", "take;take", 1, 5, []quota.Fault{quota.FaultLostReply, quota.FaultOutage}, always},
		{"", testenv.Pick("take;take", "take,take;take"), 2, 4, []quota.Fault{quota.FaultRetry}, always},
		{":prefetch=1", "take,take;take", 1, 4, nil, counts},
		{":prefetch=1", "take,take;take", 1, 4, []quota.Fault{quota.FaultLostReply, quota.FaultOutage}, always},
	} {
		scripts, err := explore.ParseScripts(c.scripts)
		if err != nil {
			t.Fatal(err)
		}
		sel := testkit.Strategy(t, "lease"+c.options)
		r, err := explore.Run(t.Context(), sel, explore.Config{
			Scripts: scripts, Instances: c.instances, Limit: c.limit, Faults: c.faults, Properties: c.wanted,
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Findings) > 0 || r.Capped != "" {
			t.Errorf("%s on %d instances, faults %v: %+v, ended by %q", c.scripts, c.instances, c.faults, r.Findings, r.Capped)
		}
		t.Logf("%s on %d instances, faults %v: %d states", c.scripts, c.instances, c.faults, r.States)
	}
}

// TestSearchedPause: if blocks are freed at their deadline, what was spent of one is admitted again
// after a pause of the margin or longer, and after no shorter one, as the guarantee says. A job that
// settles too late breaks it without a pause.
func TestSearchedPause(t *testing.T) {
	testenv.Long(t)
	testenv.Sequential(t)
	const margin = 900 * time.Millisecond
	for _, c := range []struct {
		options     string
		late        bool // the job settles blocks at their deadline
		leaks, lies bool
		states      int
	}{
		{"expired=free", false, true, false, 35_000}, {"expired=spent", false, false, false, 10_000},
		{"expired=free", true, true, true, 7_000},
	} {
		sel := testkit.Strategy(t, "lease:ttl=1s,margin=900ms,"+c.options)
		meta := *sel.Meta
		sel.Meta, meta.Open = &meta, func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
			s, err := open(ctx, env)
			if l, ok := s.(*lease); ok && c.late {
				l.every = l.ttl
			}
			return s, err
		}
		scripts, err := explore.ParseScripts("take,take;take=3")
		if err != nil {
			t.Fatal(err)
		}
		r, err := explore.Run(t.Context(), sel, explore.Config{
			Scripts: scripts, Instances: 2, Limit: 4, Scope: explore.Scope{Times: 2, JobRounds: -1, Asks: -1},
			Bounds: explore.Bounds{MaxStates: c.states},
			Faults: []quota.Fault{quota.FaultClock}, Properties: []explore.Property{explore.Leak, explore.Guarantee},
		})
		if err != nil {
			t.Fatal(err)
		}
		leak := r.Found(explore.Leak)
		lie := r.Found(explore.Guarantee)
		if (leak != nil) != c.leaks || (lie != nil) != c.lies {
			t.Errorf("%s, late %t: leak %+v, broken guarantee %+v", c.options, c.late, leak, lie)
		}
		if leak != nil && (leak.Paused < margin) != c.late {
			t.Errorf("%s, late %t: a leak after a pause of %v", c.options, c.late, leak.Paused)
		}
		t.Logf("%s, late %t: %d states, leak %t, broken guarantee %t", c.options, c.late, r.States, leak != nil, lie != nil)
	}
}
