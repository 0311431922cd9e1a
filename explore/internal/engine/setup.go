package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// Setup is what runs, complete and valid.
type Setup struct {
	// Policy with the limit of the start.
	Policy quota.Policy
	// Second is a further window that the same limiter has; nil for none. A request needs room in both. Requests name
	// it if NamesSecond is set, and else the limiter knows it by itself.
	Second      *quota.Policy
	NamesSecond bool
	// Used units of the subject at the start.
	Used int64
	// Clients, each of which asks the instance of its number modulo Instances.
	Clients, Instances int
	// Scripts of the clients; the last one serves those that have none of their own.
	Scripts []Script
	// Skew of each instance's clock ahead of virtual time; missing ones are 0.
	Skew []time.Duration
	// Seed of the strategies' own random numbers.
	Seed uint64
	// Faults that may happen, each at most Times times, clock ticks at most MostTicks times.
	Faults    []quota.Fault
	Times     int
	MostTicks int
	// Passes has time pass while no client is in a call and no job is at work, which is no
	// fault.
	Passes bool
	// Learns is set if the policy's window is not known: nobody may be rejected once the longest time to live that
	// the subject's keys had has passed since the units in use were admitted.
	Learns bool
	// From is how long after [Start] a run begins.
	From time.Duration
	// Asks is how often one more client may ask once all scripts have ended; 0 for no such
	// client.
	Asks int
	// JobRounds is how many rounds of a periodic job there must have been for no
	// further one to start at a moment of its own choosing.
	JobRounds int
	// Life of a request that settles; from its end on nobody holds what is unsettled.
	Life time.Duration
	// Patience is how long a client may do nothing that the engine sees, by the wall
	// clock.
	Patience time.Duration
	// Beat, if not nil, counts the steps of a world in virtual time.
	Beat *sched.Beat
	// Stateless is set if neither [Engine.State] nor [Engine.Trail] will be asked for:
	// then engines need not keep what these tell.
	Stateless bool
	// Shares is set by an engine that has found memory which others than callers share: a job with a caller, or instances.
	Shares bool
	// Ordered is set if verdicts depend on the order of events and not only on
	// their sums.
	Ordered bool
}

// Script of client i.
func (s *Setup) Script(i int) Script { return s.Scripts[min(i, len(s.Scripts)-1)] }

// Begins is the first moment of a run.
func (s *Setup) Begins() time.Time { return Start.Add(s.From) }

// Ticks reports whether the clock may tick.
func (s *Setup) Ticks() bool { return s.Passes || s.Has(quota.FaultClock) }

// Has reports whether the fault may happen.
func (s *Setup) Has(fault quota.Fault) bool { return slices.Contains(s.Faults, fault) }

// SkewOf is how far the clock of an instance is ahead.
func (s *Setup) SkewOf(instance int) time.Duration {
	if instance < len(s.Skew) {
		return s.Skew[instance]
	}
	return 0
}

// Members is how many clients ask an instance.
func (s *Setup) Members(instance int) int {
	return (s.Clients - instance + s.Instances - 1) / s.Instances
}

// Split reports whether effect and reply are two steps: faults may come between, or others that share memory.
func (s *Setup) Split() bool {
	return s.Shares || len(s.Faults) > 0 || s.Instances < s.Clients || slices.ContainsFunc(s.Scripts,
		func(script Script) bool { return len(script) > 1 || script.Operates() })
}

// Provision sets the subject up. in is the first instance of the strategy of that name.
func (s *Setup) Provision(ctx context.Context, strategy strategies.Strategy, name string) error {
	provisioner, ok := strategy.(strategies.Provisioner)
	if !ok && s.Used > 0 {
		return &UnfitError{Err: fmt.Errorf("strategy %s cannot begin with units used: leave them out", name)}
	}
	if !ok {
		return nil
	}
	if err := provisioner.Provision(ctx, &s.Policy,
		[]strategies.Grant{{Subject: Subject, Limit: s.Policy.Limit, Used: s.Used}}); err != nil {
		return fmt.Errorf("set the subject up: %w", err)
	}
	return nil
}

// ClientName names client i: A to Z, then client26.
func ClientName(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return fmt.Sprintf("client%d", i)
}

// ClientColumn is client i in a timeline.
func ClientColumn(i int) results.Column {
	column := results.Column{Name: ClientName(i), Role: codes.RoleClient}
	if i >= 26 {
		column.Label = strconv.Itoa(i)
	}
	return column
}

// SecondEnd is when the second window at t ends, or t itself if there is none.
func (s *Setup) SecondEnd(t time.Time) time.Time {
	if s.Second == nil {
		return t
	}
	return endOf(&s.Second.Window, t)
}

// WindowEnd is when the policy's window at t ends, or t itself if none ever does.
func (s *Setup) WindowEnd(t time.Time) time.Time { return endOf(&s.Policy.Window, t) }

func endOf(win *quota.Window, t time.Time) time.Time {
	switch {
	case win.Kind.Tumbling():
		return win.At(t).End
	case win.Kind == quota.Rolling, win.Kind == quota.FirstRequest:
		return t.Add(win.RealLength())
	case win.Kind == quota.Bucket:
		// Time for one unit more, by a server's clock, which tells whole microseconds.
		unit := time.Duration(win.Flow().Until(quota.Level{Units: 1}))
		return t.Add(unit + time.Microsecond - 1).Truncate(time.Microsecond)
	default:
		return t
	}
}

// Rounded is t if runs begin at a whole millisecond, and else the first moment from t on that is
// whole milliseconds after the beginning. Redis tells the deadlines of keys in milliseconds and cuts parts
// of one off: what is admitted in that part is the store's error, and no limiter's.
func (s *Setup) Rounded(t time.Time) time.Time {
	if s.From%time.Millisecond == 0 {
		return t
	}
	part := t.Sub(s.Begins()) % time.Millisecond
	if part > 0 {
		t = t.Add(time.Millisecond - part)
	}
	return t
}

// Renewed is when at the latest all that was used at t is free again, or t itself
// if that never happens by itself.
func (s *Setup) Renewed(t time.Time) time.Time {
	renewed := s.WindowEnd(t)
	if policy := &s.Policy; policy.Window.Kind == quota.Bucket {
		renewed = t.Add(time.Duration(policy.Window.Flow().Until(quota.Level{Units: policy.Limit})))
	}
	if second := s.SecondEnd(t); second.After(renewed) {
		return second
	}
	return renewed
}
