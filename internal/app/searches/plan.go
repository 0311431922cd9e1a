package searches

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/app/terminal"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/strategies"
)

// asking is one search or enumeration of the command.
type asking struct {
	sel strategies.Selection
	cfg explore.Config
}

// repeatsStopped reports whether err says that schedules of a service do not repeat, which those of a stopped clock
// may.
func (a *asking) repeatsStopped(err error) bool {
	return a.cfg.Service != "" && a.cfg.ServiceClock == "" && errors.Is(err, explore.ErrNotDeterministic)
}

// plan lists the searches of the chosen strategies: those of [explore.Config.Placed] if anything
// except a policy, or the limit of a service, is said about what is to happen in them, and those of
// [explore.Searches] otherwise.
func (s *Options) plan(chosen []strategies.Selection, cfg explore.Config) (out []asking) {
	said := s.Full || s.Given("limit") && cfg.Service == "" // a service may have a limit that it does not read
	for _, name := range []string{"instances", "clients", "script", "used", "skew", "faults", "times", "jobs"} {
		said = said || s.Given(name)
	}
	for _, sel := range chosen {
		searches := []explore.Config{cfg}
		switch {
		case !said:
			searches = explore.Searches(sel, cfg)
		case !s.Full:
			searches = cfg.Placed(sel)
		}
		for _, config := range searches {
			out = append(out, asking{sel, config})
		}
	}
	return out
}

// progress of the searches of one command: how far each has come, and what time it gets.
type progress struct {
	plan     []asking
	full     bool
	parallel int
	deadline int64            // of all, in nanoseconds; 0 for none
	until    map[string]int64 // the deadline of a strategy that has several searches, likewise

	mu  sync.Mutex
	all []searching
}

// searching is one of them.
type searching struct {
	name         string
	progress     explore.Progress
	began        int64
	active, done bool
}

func newProgress(plan []asking, full bool, parallel int, timeout time.Duration) *progress {
	s := &progress{plan: plan, full: full, parallel: max(parallel, 1), until: map[string]int64{},
		all: make([]searching, len(plan))}
	for i := range plan {
		s.all[i].name = plan[i].sel.String()
	}
	if timeout > 0 {
		s.deadline = clock.Nano() + int64(timeout)
	}
	return s
}

// limited ends when the time of all searches is up, if they start processes: one start may take longer than that.
func (s *progress) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.deadline == 0 || s.plan[0].cfg.Service == "" {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(s.deadline-clock.Nano()))
}

// begin says that a search begins, and returns how. Of the time that is left, to all or
// to its strategy, it gets as much as each of those after it can have.
func (s *progress) begin(i int) explore.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := &s.all[i]
	x.began = clock.Nano()
	x.active = true
	cfg := s.plan[i].cfg
	cfg.Progress = &x.progress
	switch {
	case s.deadline > 0:
		cfg.Timeout = s.share(i, s.deadline, func(*searching) bool { return true })
	case cfg.Timeout > 0: // that of one strategy
		if s.until[x.name] == 0 {
			// the rest is for schedules at random, and for starting processes
			s.until[x.name] = x.began + int64(cfg.Timeout*9/10)
		}
		cfg.Timeout = s.share(i, s.until[x.name], func(other *searching) bool { return other.name == x.name })
	}
	return cfg
}

// share is what a search gets of the time until a deadline that it has in common with others.
func (s *progress) share(i int, deadline int64, among func(*searching) bool) time.Duration {
	ahead := 0 // of this one and those after it
	for j := range s.all {
		if searching := &s.all[j]; !searching.done && (j == i || !searching.active && among(searching)) {
			ahead++
		}
	}
	turns := (ahead + s.parallel - 1) / s.parallel
	return max((time.Duration(deadline-s.all[i].began) / time.Duration(turns)).Round(time.Millisecond), time.Millisecond)
}

func (s *progress) end(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[i].active = false
	s.all[i].done = true
}

// status is how far all of them have come.
func (s *progress) status() terminal.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	var active []*searching
	var share float64
	for i := range s.all {
		switch searching := &s.all[i]; {
		case searching.done:
			share++
		case searching.active:
			active = append(active, searching)
			share += searching.progress.Read().Share
		}
	}
	out := terminal.Status{Share: share / float64(len(s.all))}
	if s.deadline > 0 {
		out.Most = max(time.Duration(s.deadline-clock.Nano()), time.Second)
	}
	if len(active) == 0 {
		return out
	}
	first := active[0]
	text, most := first.text(s.full, cmp.Or(s.plan[0].cfg.MaxStates, bounds.DefaultStates))
	out.Text = text
	if len(active) > 1 {
		out.Text += fmt.Sprintf(" (and %d more)", len(active)-1)
	}
	if len(s.all) > 1 {
		out.Text = fmt.Sprintf("%d of %d done  %s", int(share), len(s.all), out.Text)
	} else if most > 0 && (out.Most == 0 || most < out.Most) {
		out.Most = most
	}
	return out
}

// text says how far one search has come, and how long it takes at most until it has
// as many states as it may.
func (x *searching) text(full bool, states int) (string, time.Duration) {
	sofar := x.progress.Read()
	passed := clock.Nano() - x.began
	perSecond := int64(float64(sofar.Runs) / max(float64(passed)/1e9, 0.001))
	depth := "depth " + format.Count(sofar.Depth)
	rate := format.Count(perSecond) + "/s"
	if full {
		return fmt.Sprintf("%s: %s, %s, %s", x.name, format.Number(sofar.Runs, "schedule"), depth, rate), 0
	}
	if sofar.Counting {
		states *= 2 // each part has that many
	}
	parts := []string{format.Number(sofar.States, "state"), "frontier " + format.Count(sofar.Waiting), depth, rate,
		"bound " + format.Count(int64(states))}
	most := time.Duration(0)
	if sofar.States > 0 {
		most = time.Duration(float64(passed) / float64(sofar.States) * float64(int64(states)-sofar.States))
	}
	if sofar.Counting {
		parts = append([]string{format.Number(sofar.Preemptions, "preemption") + " at most"}, parts...)
	}
	return x.name + ": " + strings.Join(parts, ", "), most
}
