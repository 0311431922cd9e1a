package harness

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// handClock shows the time that it is set to.
type handClock struct {
	quota.Clock // panics if a job waits
	now         time.Time
}

func (c *handClock) Now() time.Time { return c.now }

// worked is a strategy with jobs.
type worked struct {
	strategies.Strategy
	jobs []strategies.Job
}

func (w *worked) Jobs() []strategies.Job { return w.jobs }

// TestAchievedPeriod is the longest time from the start of a successful round to the end of the next one, or until now.
// A round that fails does not count as one, and neither do jobs without a period.
func TestAchievedPeriod(t *testing.T) {
	clock := &handClock{now: time.Unix(1000, 0)}
	var fails error
	var takes time.Duration
	run := func(context.Context) (bool, error) {
		clock.now = clock.now.Add(takes)
		return true, fails
	}
	w := &worked{jobs: []strategies.Job{{Name: "sync", Every: time.Second, Run: run}, {Name: "queue", Run: run}}}
	s := &Session{Jobs: jobsOf(w, 0, clock)}
	for _, j := range s.Jobs {
		j.Begin()
	}
	round := func(job int, after time.Duration, err error, want time.Duration) {
		t.Helper()
		clock.now = clock.now.Add(after)
		fails = err
		if _, got := s.Jobs[job].Run(t.Context()); !errors.Is(got, err) {
			t.Errorf("the round ends in %v, want %v", got, err)
		}
		if got := s.AchievedPeriod(); got != want {
			t.Errorf("%s after a round at %v: achieved %v, want %v", s.Jobs[job].Name, clock.now, got, want)
		}
	}
	planted := errors.New("planted error")
	if got := s.AchievedPeriod(); got != 0 {
		t.Errorf("achieved %v before any round", got)
	}
	round(1, 9*time.Second, nil, 0)
	round(0, 0, planted, 0)
	round(0, time.Second, nil, 10*time.Second)
	round(0, 2*time.Second, nil, 10*time.Second)
	round(0, 6*time.Second, planted, 10*time.Second)
	round(0, 6*time.Second, nil, 12*time.Second)
	takes = time.Second
	round(0, 5*time.Second, nil, 12*time.Second)
	round(0, 12*time.Second, nil, 14*time.Second) // from the start of the one before to its end
	round(0, time.Second, planted, 14*time.Second)
	round(0, 4*time.Second, nil, 14*time.Second)
	// what came after the start of the failed one was not in the one after it
	round(0, 10*time.Second, nil, 17*time.Second)
	clock.now = clock.now.Add(17 * time.Second)
	if got := s.AchievedPeriod(); got != 18*time.Second {
		t.Errorf("18 s after the start of the last round: achieved %v", got)
	}
	if n, first := s.FailedRounds(); n != 3 || !errors.Is(first, planted) {
		t.Errorf("%d failed rounds, the first %v", n, first)
	}
}

// TestSettle runs jobs until a round of all changes nothing, or time is up. A round
// that fails changes nothing.
func TestSettle(t *testing.T) {
	left := 3
	rounds := 0
	var fails error
	w := &worked{jobs: []strategies.Job{
		{Name: "queue", Run: func(context.Context) (bool, error) {
			rounds++
			if left == 0 {
				return false, nil
			}
			left--
			return true, nil
		}},
		{Name: "broken", Run: func(context.Context) (bool, error) { return true, fails }},
	}}
	fails = errors.New("planted error")
	s := &Session{Jobs: jobsOf(w, 0, &handClock{})}
	if !s.Settle(t.Context()) || left != 0 || rounds != 4 {
		t.Errorf("not idle, or %d left after %d rounds", left, rounds)
	}
	if !new(Session).Settle(t.Context()) {
		t.Error("not idle without jobs")
	}
	fails = nil // from now on it never rests
	ctx, cancel := context.WithCancel(t.Context())
	rounds = 0
	s.Jobs[0].Run = func(context.Context) (bool, error) {
		rounds++
		if rounds == 5 {
			cancel()
		}
		return false, nil
	}
	if s.Settle(ctx) || rounds != 5 {
		t.Errorf("idle, or %d rounds", rounds)
	}
}

// TestPanicOfAJob is an error of its round.
func TestPanicOfAJob(t *testing.T) {
	w := &worked{jobs: []strategies.Job{{Name: "sync", Run: func(context.Context) (bool, error) {
		panic("planted panic")
	}}}}
	s := &Session{Jobs: jobsOf(w, 0, &handClock{})}
	if _, err := s.Jobs[0].Run(t.Context()); err == nil {
		t.Error("no error")
	}
	if n, _ := s.FailedRounds(); n != 1 {
		t.Errorf("%d failed rounds", n)
	}
}
