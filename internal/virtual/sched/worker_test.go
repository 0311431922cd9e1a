package sched_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/virtual/sched"
)

// Runs that follow each other on the same coroutines go as the first one went,
// whatever became of their actors: one ends, one is killed where it waits, one is
// killed before it begins, and one panics.
func TestWorkersServeRunAfterRun(t *testing.T) {
	var log []string
	s := sched.New(sched.Config{Observe: func(e *sched.Event) { log = append(log, e.String()) }})
	body := func(name string) func(ctx context.Context) {
		return func(ctx context.Context) {
			defer func() { log = append(log, name+" leaves") }()
			for i := range 2 {
				_ = sched.Statement(ctx, fmt.Sprint(name, i), func() error { return nil })
			}
			if name == "moody" {
				panic("moody")
			}
		}
	}
	var first []string
	for round := range 5 {
		log = nil
		s.Reset()
		ends := s.Go("ends", body("ends"))
		dies := s.Go("dies", body("dies"))
		late := s.Go("late", body("late"))
		if ends.ID != 0 || late.ID != 2 {
			t.Fatalf("round %d begins with actors %d and %d", round, ends.ID, late.ID)
		}
		s.Step(dies)
		for !ends.Done() {
			s.Step(ends)
		}
		s.Kill(dies)
		s.Kill(late)
		if !dies.Done() || !late.Done() || slices.Contains(log, "late leaves") || !slices.Contains(log, "dies leaves") {
			t.Fatalf("round %d: %q", round, log)
		}
		if round == 0 {
			first = slices.Clone(log)
		} else if !slices.Equal(log, first) {
			t.Fatalf("round %d: %q, the first was %q", round, log, first)
		}
		moody := s.Go("moody", body("moody"))
		func() {
			defer func() {
				if p, ok := recover().(*sched.Panic); !ok || p.Value != "moody" || p.Actor != "moody" ||
					!strings.Contains(string(p.Stack), "worker_test.go") {
					t.Error("the panic of a body is lost")
				}
			}()
			for range 3 {
				s.Step(moody)
			}
		}()
	}
	s.Close()
}
