package sched_test

import (
	"context"
	"slices"
	"testing"

	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/strategies"
)

// Starts is two steps at once if the first operation is one of a store, and one if
// it is not.
func TestStartsIsTwoSteps(t *testing.T) {
	w := newWorld(t)
	for name, body := range map[string]func(s *sched.Scheduler) func(context.Context){
		"command": func(*sched.Scheduler) func(context.Context) {
			return func(ctx context.Context) { w.rdb.Incr(ctx, "a"); w.rdb.Incr(ctx, "b") }
		},
		"one command": func(*sched.Scheduler) func(context.Context) {
			return func(ctx context.Context) { w.rdb.Incr(ctx, "a") }
		},
		"sleep": func(s *sched.Scheduler) func(context.Context) {
			return func(ctx context.Context) { check(t, s.Clock(0).Sleep(ctx, hour)); w.rdb.Incr(ctx, "a") }
		},
		"nothing": func(*sched.Scheduler) func(context.Context) { return func(context.Context) {} },
	} {
		for _, split := range []bool{false, true} {
			events := func(starts func(*sched.Scheduler, *sched.Actor)) (out []string) {
				s := w.scheduler(sched.Config{SplitReplies: split, Observe: func(e *sched.Event) { out = append(out, e.String()) }})
				a := s.Go("caller", body(s))
				starts(s, a)
				out = append(out, "then "+a.String()+" b="+w.get(t, "b"))
				check(t, s.Run(first))
				if s.Stepped() != uint64(len(out)-1) {
					t.Errorf("%s: %d steps, and the events %q", name, s.Stepped(), out)
				}
				return out
			}
			want := events(func(s *sched.Scheduler, a *sched.Actor) {
				s.Step(a)
				if !a.Done() && a.Op().Store() {
					s.Step(a)
				}
			})
			if got := events((*sched.Scheduler).Starts); !slices.Equal(got, want) {
				t.Errorf("%s, replies apart %t: %q, and in two steps %q", name, split, got, want)
			}
		}
	}
}

// An idle job that is killed begins no further round.
func TestKilledJobBeginsNoRound(t *testing.T) {
	s := sched.New(sched.Config{Start: start})
	defer s.Close()
	rounds := 0
	a := s.NewJobs("").Start([]strategies.Job{{Name: "sync", Every: hour, Run: func(context.Context) (bool, error) {
		rounds++
		return true, nil
	}}})[0]
	a.Job().Prompt()
	s.Step(a)
	s.Kill(a)
	if rounds != 1 || !a.Done() {
		t.Errorf("%d rounds, done %t", rounds, a.Done())
	}
}
