package sched_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/strategies"
)

func TestPeriodicJobRunsWhileCallersLive(t *testing.T) {
	for _, how := range []string{"run", "simulate"} {
		s := sched.New(sched.Config{Start: start})
		var rounds []string
		jobs := s.NewJobs("i0/")
		a := jobs.Start([]strategies.Job{{Name: "sync", Every: 24 * time.Hour, Run: func(ctx context.Context) (bool, error) {
			rounds = append(rounds, s.Now().Format(time.DateTime))
			return false, s.Clock(0).Sleep(ctx, time.Minute)
		}}})[0]
		s.Go("caller", func(ctx context.Context) {
			check(t, s.Clock(0).Sleep(ctx, 60*time.Hour))
			jobs.Wake("sync") // on demand; the period stays as it was
			check(t, s.Clock(0).Sleep(ctx, 20*time.Hour))
		})
		if how == "run" {
			check(t, s.Run(first))
		} else {
			check(t, s.Simulate(start.Add(1000*time.Hour), instantly))
		}
		want := "2026-11-21 10:00:00 2026-11-22 10:00:00 2026-11-22 22:00:00 2026-11-23 10:00:00"
		if got := strings.Join(rounds, " "); got != want {
			t.Errorf("%s: rounds at %s\nwant %s", how, got, want)
		}
		if a.Job().Rounds != 4 || a.Name != "i0/sync" {
			t.Errorf("%s: %s did %d rounds", how, a.Name, a.Job().Rounds)
		}
		if !s.Now().Equal(start.Add(80 * time.Hour)) {
			t.Errorf("%s: went on until %v for a job that is not due", how, s.Now())
		}
		s.Close()
	}
}

// A job that outlasts its period misses rounds and never overlaps with itself.
func TestSlowJobMissesRounds(t *testing.T) {
	s := sched.New(sched.Config{Start: start})
	inside := 0
	rounds := 0
	s.NewJobs("").Start([]strategies.Job{{Name: "slow", Every: time.Second, Run: func(ctx context.Context) (bool, error) {
		inside++
		rounds++
		if inside != 1 {
			t.Error("overlaps with itself")
		}
		err := s.Clock(0).Sleep(ctx, 2500*time.Millisecond)
		inside--
		return true, err
	}}})
	s.Go("caller", func(ctx context.Context) { check(t, s.Clock(0).Sleep(ctx, 9500*time.Millisecond)) })
	check(t, s.Simulate(start.Add(time.Hour), instantly))
	if rounds != 3 { // at 1, 4 and 7 s
		t.Errorf("%d rounds, want 3", rounds)
	}
	s.Close()
}

func TestWokenJob(t *testing.T) {
	for _, how := range []string{"run", "simulate"} {
		s := sched.New(sched.Config{Start: start})
		queue := []string{"before start"}
		done := []string{}
		jobs := s.NewJobs("")
		jobs.Wake("write-back") // before the strategy has said what its jobs are
		failing := errors.New("database gone")
		a := jobs.Start([]strategies.Job{{
			Name:    "write-back",
			Pending: func() bool { return len(queue) > 0 },
			Run: func(ctx context.Context) (bool, error) {
				done = append(done, queue...)
				queue = nil
				return true, failing
			},
		}})[0]
		s.Go("caller", func(ctx context.Context) {
			check(t, s.Clock(0).Sleep(ctx, time.Second))
			if len(done) != 1 {
				t.Errorf("%s: the early wake was lost", how)
			}
			jobs.Wake("write-back") // nothing to do
			check(t, s.Clock(0).Sleep(ctx, time.Second))
			queue = append(queue, "later")
			jobs.Wake("write-back")
		})
		if how == "run" {
			check(t, s.Run(first))
		} else {
			check(t, s.Simulate(start.Add(time.Hour), instantly))
		}
		if strings.Join(done, ",") != "before start,later" || a.Job().Rounds != 2 || !errors.Is(a.Job().Err, failing) ||
			!a.Job().Changed {
			t.Errorf("%s: done %v, state %+v", how, done, *a.Job())
		}
		s.Close()
	}
}

// One wake stands for all that is pending, however many rounds that takes, and
// a round that fails is left alone until it is asked for again.
func TestWokenJobGoesOnWhileItGetsThingsDone(t *testing.T) {
	s := sched.New(sched.Config{Start: start})
	defer s.Close()
	left := 10
	down := false
	jobs := s.NewJobs("")
	a := jobs.Start([]strategies.Job{{
		Name:    "batches",
		Pending: func() bool { return left > 0 },
		Run: func(context.Context) (bool, error) {
			if down {
				return false, errGone
			}
			left -= min(left, 4)
			return true, nil
		},
	}})[0]
	check(t, s.Run(first)) // it had work from the start
	if left != 0 || a.Job().Rounds != 3 {
		t.Fatalf("%d left after %d rounds", left, a.Job().Rounds)
	}
	left = 10
	down = true
	jobs.Wake("batches")
	check(t, s.Run(first))
	if a.Job().Rounds != 4 || !errors.Is(a.Job().Err, errGone) {
		t.Fatalf("%d rounds during an outage, last error %v", a.Job().Rounds-3, a.Job().Err)
	}
	down = false
	jobs.Wake("batches")
	check(t, s.Run(first))
	if left != 0 {
		t.Errorf("%d left after the outage", left)
	}
}
