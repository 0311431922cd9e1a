package explore

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/explore/internal/service"
)

// attempts is how often a beginning is tried: if several clients wait for one
// lock, PostgreSQL may let them go on in another order each time.
const attempts = 5

// perSet is how many schedules each set of instances of a service is given at once.
const perSet = 16

// attempt is a schedule that was run, and what came of it.
type attempt struct {
	beginning, path []engine.Choice
	// more are other choices than those of the path.
	more     []branch
	found    []breakage
	declared []Finding // that a clause allows
	leak     int64
	waited   bool
	aborts   map[Property]int
	// unrepeated counts breaches that a second run has not shown.
	unrepeated int
	err        error
	done       bool
}

// schedules are run at the same time, each by one of the workers.
type schedules struct {
	turns
	search *statelessSearch
	ctx    context.Context // of the walk
	all    []attempt
}

// try takes in a schedule with the first of the beginnings. If it was not run ahead, workers run some at the same time,
// most at most.
func (w *statelessSearch) try(ctx context.Context, beginnings [][]engine.Choice, most int64) error {
	if len(w.ahead) == 0 || !w.ahead[0].done {
		n := int64(1)
		if sets := w.crew.fit(w.runs); sets > 1 {
			n = min(most, int64(len(beginnings)), int64(sets*perSet))
		}
		b := &schedules{search: w, ctx: ctx, all: make([]attempt, n)}
		for i := range b.all {
			b.all[i].beginning = beginnings[i]
		}
		b.of = len(b.all)
		if n == 1 {
			b.run(w.search)
		} else if err := w.crew.share(b); err != nil && ctx.Err() == nil {
			return err
		}
		for i := range b.all {
			if errors.Is(b.all[i].err, service.ErrStale) { // then what others have run meanwhile says nothing
				return b.all[i].err
			}
		}
		w.ahead = b.all
	}
	a := &w.ahead[0]
	w.ahead = w.ahead[1:]
	return w.take(ctx, a)
}

// run runs schedules until there are none left, or the walk is about to end.
func (b *schedules) run(s *search) {
	for i, ok := b.begin(); ok; i, ok = b.begin() {
		if i > 0 && (b.ctx.Err() != nil || b.search.timeUp() != "") {
			return
		}
		attempt := &b.all[i]
		for range attempts {
			attempt.err = b.search.schedule(s, attempt)
			if !errors.Is(attempt.err, engine.ErrMisfit) {
				break
			}
		}
		attempt.done = true
		if attempt.err != nil && !errors.Is(attempt.err, engine.ErrMisfit) || b.search.cfg.First && len(attempt.found) > 0 {
			b.drop()
		}
	}
}

// schedule runs one schedule to its end, over the engine of s.
func (w *statelessSearch) schedule(s *search, a *attempt) error {
	*a = attempt{beginning: a.beginning}
	path := slices.Clone(a.beginning)
	actor := int32(-1)
	preemptions := 0
	err := s.drive(func() (choice engine.Choice, ok bool) {
		next := s.Enabled(nil, s.symmetric)
		at := len(a.path)
		if len(next) == 0 {
			return choice, false
		}
		by := priced{next}
		if w.before != nil {
			by = prices(s.World, actor, next, false)
		}
		if at >= len(a.beginning) {
			path, a.more = by.choose(path, a.more, preemptions)
		}
		preemptions += max(0, slices.IndexFunc(by[:], func(choices []engine.Choice) bool {
			return slices.Contains(choices, path[at])
		}))
		return path[at], true
	}, func(choice engine.Choice) error {
		if w.before != nil {
			actor = inFlight(s.World, choice, actor)
		}
		a.path = path[:len(a.path)+1]
		a.leak = max(a.leak, s.Run.Truth.Leak())
		if len(a.path) < len(a.beginning) {
			return nil // has been judged in the run that this one began in
		}
		return a.check(s)
	})
	a.waited = s.Run.Waited
	a.aborts = maps.Clone(s.Run.Aborts)
	switch {
	case err != nil:
		return err
	case len(a.path) < len(a.beginning):
		return engine.ErrMisfit
	case s.Traits.Wall:
		return a.again(s)
	}
	return nil
}

// check adds what is broken at this moment, and was not before.
func (a *attempt) check(s *search) error {
	breaches, err := s.check(s.wanted)
	for _, finding := range breaches {
		if finding.Property == declared {
			a.declared = append(a.declared, finding)
		} else if !slices.ContainsFunc(a.found, func(f breakage) bool { return f.Property == finding.Property }) {
			a.found = append(a.found, breakage{finding, a.path})
		}
	}
	return err
}

// again leaves out what a second run does not show too: the end of a window by the wall clock is no part of a schedule.
func (a *attempt) again(s *search) error {
	var out []breakage
	for _, breakage := range a.found {
		var breaches []Finding
		err := s.at(breakage.path, func() (err error) {
			breaches, err = s.check(map[Property]bool{breakage.Property: true})
			return errors.Join(err, s.finish())
		})
		if err != nil {
			return err
		}
		if slices.ContainsFunc(breaches, func(finding Finding) bool { return finding.Property == breakage.Property }) {
			out = append(out, breakage)
		}
	}
	a.unrepeated = len(a.found) - len(out)
	a.found = out
	return nil
}

// take takes in what a schedule has shown.
func (w *statelessSearch) take(ctx context.Context, a *attempt) error {
	w.queued--
	for _, choice := range a.path {
		w.applied[choice.Fault()] = true
	}
	for i := range a.declared {
		w.allow(&a.declared[i], w.res)
	}
	if a.err == nil || !w.Traits.Wall { // else a second run has not shown it
		w.keep(a.found)
	}
	switch {
	case ctx.Err() != nil && (a.err != nil || !a.done): // the walk ends before the next one
	case a.err == nil:
		w.count(a)
		w.add(a.path, a.more)
	case errors.Is(a.err, engine.ErrMisfit):
		w.unrepeated++
	default:
		w.told()
		return a.err
	}
	w.told()
	return nil
}

// told says how far the walk has come.
func (w *statelessSearch) told() {
	res := w.res
	census := w.census
	if census != nil {
		census.Schedules = w.runs
		census.Waited = w.waiting
		census.Leaking = w.leaking
		census.Worst = w.worst
	} else {
		now := *res
		w.into(&now)
		res = &now
	}
	w.cfg.sofar.note(res, census, slices.SortedFunc(maps.Values(w.found), byProperty))
	w.cfg.Progress.set(Sofar{Runs: w.runs, States: int64(w.states), Waiting: int64(w.queued), Depth: int64(w.depth),
		Counting: w.before != nil, Preemptions: int64(w.preemptions)})
}

// fit has no more workers than sets of instances can be had after so many schedules, and returns how many.
func (c *workers) fit(runs int64) int {
	if e, ok := c.search.Engine.(*service.Engine); ok && len(c.work) == 0 {
		c.size = 1 + e.Further(runs, c.search.cfg.Workers-1)
	}
	return c.size
}

// control has a service answer once more as it did at first.
func (s *search) control(ctx context.Context) error {
	if e, ok := s.Engine.(*service.Engine); ok && ctx.Err() == nil {
		return e.Control()
	}
	return nil
}
