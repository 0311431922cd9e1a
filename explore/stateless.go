package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/explore/internal/service"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/results"
)

// statelessSearch goes over all schedules of an engine that has no state. A run always goes
// on to its end, so that one run shows what every beginning of its schedule leads
// to, and what else could have been chosen on the way begins further runs: those
// of the shortest beginnings first.
type statelessSearch struct {
	*search
	crew *workers
	// res is nil in an enumeration, which goes on when everything wanted has been found, and census in a search.
	res    *Result
	census *results.Census
	// queue holds beginnings. Preemptions are counted in the second part of a search.
	queue       levels[[]engine.Choice]
	preemptions int
	// ahead are attempts at the beginnings that come next.
	ahead []attempt
	// found is the shortest schedule for each property, and before has those of the first part; nil in the first part.
	found, before map[Property]breakage
	aborts        map[Property]*abort
	unrepeated    int // beginnings that did not fit
	queued        int // beginnings that have not been tried
	tally
}

// abort is an entry of [results.ServerFacts.Aborts] in the making.
type abort struct {
	schedules int64
	shortest  *breakage
}

func (s *search) newStatelessSearch() *statelessSearch {
	return &statelessSearch{search: s, found: map[Property]breakage{}, aborts: map[Property]*abort{},
		tally: tally{states: 1}}
}

// allToTheirEnds searches an engine that has no state.
func (s *search) allToTheirEnds(ctx context.Context, res *Result) error {
	statelessSearch := s.newStatelessSearch()
	statelessSearch.res = res
	s.halves = s.bounds() > 0
	maxPoints := s.cfg.MaxStates
	maxRuns := int64(math.MaxInt64)
	if s.Traits.Wall {
		maxPoints = math.MaxInt
		maxRuns = int64(s.cfg.MaxStates)
	}
	if err := statelessSearch.walkAndControl(ctx, maxPoints, maxRuns); err != nil {
		return err
	}
	s.halves = false
	found := statelessSearch.found
	for property := range found {
		delete(statelessSearch.wanted, property)
	}
	if statelessSearch.queued > 0 && s.goesOn(ctx) {
		var err error
		found, err = statelessSearch.withFewPreemptions(ctx, maxRuns)
		if err != nil {
			return err
		}
	}
	statelessSearch.into(res)
	if err := s.show(res, slices.Collect(maps.Values(found))); err != nil {
		return err
	}
	var err error
	res.Aborts, err = statelessSearch.repeatAborts()
	return err
}

// withFewPreemptions goes over the schedules by how many requests are interrupted between two commands, for what has
// not been found.
func (w *statelessSearch) withFewPreemptions(ctx context.Context, maxRuns int64) (map[Property]breakage, error) {
	search := w.newStatelessSearch()
	search.res = w.res
	search.before = w.found
	search.found = maps.Clone(w.found)
	if err := search.walkAndControl(ctx, math.MaxInt, maxRuns); err != nil {
		return nil, err
	}
	whole := w.bounds()
	if search.capped != "" {
		whole = search.preemptions - 1
	}
	w.res.Bounded = search.bounded(whole)
	return search.found, nil
}

// repeatAborts lists the aborts, with their shortest schedules run again.
func (w *statelessSearch) repeatAborts() (out []results.Abort, err error) {
	for _, kind := range []Property{Deadlock, SerializationFailure} {
		if abort := w.aborts[kind]; abort != nil {
			if err := w.repeat(abort.shortest); err != nil {
				return nil, err
			}
			out = append(out, results.Abort{Kind: kind, Schedules: abort.schedules, Shortest: &abort.shortest.Finding})
		}
	}
	return out, nil
}

// walkAndControl walks again from the start if a service turns out to keep something from one schedule for the next: it
// has started anew, and does so before each schedule from then on.
func (w *statelessSearch) walkAndControl(ctx context.Context, maxPoints int, maxRuns int64) error {
	for {
		err := w.walk(ctx, maxPoints, maxRuns)
		if err == nil {
			err = w.control(ctx)
		}
		if !errors.Is(err, service.ErrStale) {
			return err
		}
		fresh := w.newStatelessSearch()
		fresh.res = w.res
		fresh.census = w.census
		fresh.before = w.before
		maps.Copy(fresh.found, w.before)
		*w = *fresh
	}
}

// walk runs every schedule until all that is wanted has been found, or bounds end it.
func (w *statelessSearch) walk(ctx context.Context, maxPoints int, maxRuns int64) (err error) {
	w.crew = w.newWorkers(ctx)
	defer func() { err = cmp.Or(err, w.crew.end()) }()
	w.queue = levels[[]engine.Choice]{{{nil}}}
	w.queued = 1
	w.ahead = nil
	for w.preemptions = 0; w.preemptions < len(w.queue); w.preemptions++ {
		for length := 0; length < len(w.queue[w.preemptions]); length++ { //nolint:intrange // it grows
			level := w.queue[w.preemptions][length]
			for i := range level {
				if w.complete(length) {
					return nil
				}
				w.capped = w.bound(ctx, maxPoints, maxRuns)
				if w.capped != "" {
					return nil
				}
				if err := w.try(ctx, level[i:], maxRuns-w.runs); err != nil {
					return err
				}
			}
			w.queue[w.preemptions][length] = nil
		}
	}
	if w.unrepeated > 0 {
		w.capped = fmt.Sprintf("PostgreSQL let waiting clients go on in an order of its own %d times", w.unrepeated)
		if w.Traits.Wall {
			w.capped = format.Number(w.unrepeated, "schedule") + " went otherwise when run again"
		}
	}
	w.capped = cmp.Or(stopped(ctx), w.capped)
	return nil
}

// bound is what ends the walk before the next schedule; empty if nothing does.
func (w *statelessSearch) bound(ctx context.Context, maxPoints int, maxRuns int64) string {
	switch over := w.over(ctx); {
	case over != "":
		return over
	case w.cfg.First && len(w.found) > 0:
		return w.endAtFirst()
	case w.states > maxPoints:
		return "ended after " + format.Number(w.states-1, "state")
	case w.runs >= maxRuns:
		return "ended after " + format.Number(w.runs, "schedule")
	}
	return ""
}

// complete reports whether no schedule that is longer can be a shorter find.
func (w *statelessSearch) complete(length int) bool {
	for property := range w.wanted {
		if breakage, ok := w.found[property]; !ok || len(breakage.path) > length && w.before == nil {
			return false
		}
	}
	return w.census == nil
}

// branch is another choice than that of a schedule at a position, with the preemptions up to it.
type branch struct {
	at, preemptions int
	choice          engine.Choice
}

// choose adds the first choice to a path, and the others to its branches.
func (p *priced) choose(path []engine.Choice, more []branch, preemptions int) ([]engine.Choice, []branch) {
	at := len(path)
	for price, choices := range p {
		for _, choice := range choices {
			if at == len(path) {
				path = append(path, choice)
			} else {
				more = append(more, branch{at, preemptions + price, choice})
			}
		}
	}
	return path, more
}

// add queues the branches of a path.
func (w *statelessSearch) add(path []engine.Choice, more []branch) {
	for _, branch := range more {
		if branch.preemptions <= w.bounds() {
			w.queue.add(branch.preemptions, branch.at+1, append(slices.Clone(path[:branch.at]), branch.choice))
			w.queued++
		}
	}
}

// count counts a schedule that was run to its end.
func (w *statelessSearch) count(a *attempt) {
	w.runs++
	w.unrepeated += a.unrepeated
	w.states += len(a.path) - max(len(a.beginning)-1, 0)
	w.depth = max(w.depth, len(a.path))
	if a.waited {
		w.waiting++
	}
	if a.leak > 0 {
		w.leaking++
		w.worst = max(w.worst, a.leak)
	}
	for kind, taken := range a.aborts {
		old := w.aborts[kind]
		if old == nil {
			old = &abort{}
			w.aborts[kind] = old
		}
		old.schedules++
		if old.shortest == nil || before(a.path[:taken], old.shortest.path) {
			old.shortest = &breakage{Finding{Property: kind, Detail: abortDetail}, slices.Clone(a.path[:taken])}
		}
	}
}

// keep keeps those that are shorter than what was found before.
func (w *statelessSearch) keep(found []breakage) {
	for _, breakage := range found {
		breakage.path = slices.Clone(breakage.path)
		if old, ok := w.found[breakage.Property]; w.wanted[breakage.Property] && (!ok || before(breakage.path, old.path)) {
			w.found[breakage.Property] = breakage
		}
	}
}

const abortDetail = "PostgreSQL ended a transaction"

// before reports whether a reads better than b: it is shorter, or clients come in
// their order.
func before(a, b []engine.Choice) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return slices.CompareFunc(a, b, func(x, y engine.Choice) int { return x.ID - y.ID }) < 0
}
