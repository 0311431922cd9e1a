package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quotabench/quotabench/strategies"
)

// OnPostgres reports whether a strategy is explored on a PostgreSQL server. Those
// that use it beside Redis have a model for it.
func OnPostgres(sel strategies.Selection) bool { return sel.NeedsStore(strategies.NeedPostgres) }

// fitPostgres reports why a strategy cannot be explored on PostgreSQL here.
func (c *Config) fitPostgres(sel strategies.Selection) error {
	switch {
	case sel.NeedsStore(strategies.NeedRedis):
		return fmt.Errorf("strategy %s cannot be explored: it needs Redis and PostgreSQL at once, which cannot be parked together", sel.Name)
	case len(c.Faults) > 0:
		return fmt.Errorf("strategy %s is explored on a real PostgreSQL, in which no faults can be injected: leave them out", sel.Name)
	case c.Postgres == nil:
		return fmt.Errorf("strategy %s needs PostgreSQL: install its server (Debian: postgresql, macOS: brew install postgresql), or give a URL by --postgres", sel.Name)
	}
	return nil
}

// Happening is something that PostgreSQL did to transactions in some of the
// schedules, which breaks no property.
type Happening struct {
	Kind Property `json:"kind"`
	// Schedules in which it happened.
	Schedules int64 `json:"schedules"`
	// Shortest of those that were seen.
	Shortest *Finding `json:"shortest"`
}

// sqlSearch walks over all schedules. A run always goes on to its end, so that
// one run shows what every beginning of its schedule leads to, and what else
// could have been chosen on the way begins further runs: those of the shortest
// beginnings first.
type sqlSearch struct {
	*sqlWorld
	normal    *normal
	wanted    map[Property]bool
	symmetric bool
	// all has the walk go on when everything wanted has been found.
	all bool
	// queue holds beginnings by length.
	queue [][][]choice
	// found is the shortest schedule for each property, blocked counts schedules in
	// which a client waited for a lock, and unrepeated beginnings that did not fit.
	found              map[Property]*Finding
	happened           map[Property]*Happening
	runs, waiting      int64
	points, depth      int
	unrepeated         int
	capped             string
	leaking, worstLeak int64
	lastLeak           int64 // of the schedule that was repeated last
}

// sqlAttempts is how often a beginning is tried: where several clients wait for
// one lock, PostgreSQL may let them go on in another order each time.
const sqlAttempts = 5

// walk runs every schedule until all that is wanted has been found, or bounds end it.
func (s *sqlSearch) walk(maxPoints int, maxRuns int64) error {
	s.queue = [][][]choice{{nil}}
	for length := 0; length < len(s.queue); length++ {
		for _, beginning := range s.queue[length] {
			switch {
			case s.complete(length):
				return nil
			case s.base.Err() != nil:
				s.capped = "interrupted"
			case s.points >= maxPoints:
				s.capped = fmt.Sprintf("ended after %d states", s.points)
			case s.runs >= maxRuns:
				s.capped = fmt.Sprintf("ended after %d schedules", s.runs)
			}
			if s.capped != "" {
				return s.goOn()
			}
			err := s.try(beginning)
			switch {
			case err != nil && s.base.Err() != nil: // the next round says so
			case errors.Is(err, errMisfit):
				s.unrepeated++
			case err != nil:
				return err
			}
		}
		s.queue[length] = nil
	}
	if s.unrepeated > 0 {
		s.capped = fmt.Sprintf("PostgreSQL let waiting clients go on in an order of its own %d times", s.unrepeated)
	}
	return nil
}

// goOn makes an interrupted search able to run again what it has found.
func (s *sqlSearch) goOn() error {
	if s.base.Err() == nil {
		return nil
	}
	s.base = context.WithoutCancel(s.base)
	s.abandon()
	return s.connect()
}

// complete reports whether no schedule that is longer can be a shorter find.
func (s *sqlSearch) complete(length int) bool {
	for p := range s.wanted {
		if f := s.found[p]; f == nil || len(f.path) > length {
			return false
		}
	}
	return !s.all
}

func (s *sqlSearch) try(beginning []choice) error {
	var err error
	for range sqlAttempts {
		if err = s.run(beginning); !errors.Is(err, errMisfit) {
			break
		}
	}
	return err
}

// run runs one schedule to its end.
func (s *sqlSearch) run(beginning []choice) error {
	if err := s.begin(); err != nil {
		return errors.Join(err, s.end())
	}
	path := slices.Clone(beginning)
	more := map[int][]choice{} // other choices, by position
	var found []Finding
	var leak int64
	s.blocked = false
	for at := 0; ; at++ {
		next := s.enabled(s.symmetric)
		if len(next) == 0 {
			break
		}
		if at >= len(beginning) {
			path = append(path, next[0])
			more[at] = next[1:]
		}
		if err := s.step(path[at]); err != nil {
			return errors.Join(err, s.end())
		}
		leak = max(leak, s.truth.leak())
		if at+1 < len(beginning) {
			continue // has been judged in the run that this one began in
		}
		breaches, err := s.judge(s.normal, s.wanted)
		if err != nil {
			return errors.Join(err, s.end())
		}
		for _, b := range breaches {
			if !slices.ContainsFunc(found, func(f Finding) bool { return f.Property == b.property }) {
				found = append(found, s.finding(b, path[:at+1]))
			}
		}
	}
	if len(path) < len(beginning) {
		return errors.Join(errMisfit, s.end())
	}
	if err := s.end(); err != nil {
		return err
	}
	s.count(path, found, leak)
	for at, others := range more {
		for len(s.queue) <= at+1 {
			s.queue = append(s.queue, nil)
		}
		for _, c := range others {
			s.queue[at+1] = append(s.queue[at+1], append(slices.Clone(path[:at]), c))
		}
	}
	s.points += len(path) - max(len(beginning)-1, 0)
	return nil
}

func (s *sqlSearch) count(path []choice, found []Finding, leak int64) {
	s.runs++
	s.depth = max(s.depth, len(path))
	if s.blocked {
		s.waiting++
	}
	if leak > 0 {
		s.leaking++
		s.worstLeak = max(s.worstLeak, leak)
	}
	for _, f := range found {
		if old := s.found[f.Property]; old == nil || before(f.path, old.path) {
			s.found[f.Property] = &f
		}
	}
	for kind, taken := range s.fallen {
		h := s.happened[kind]
		if h == nil {
			h = &Happening{Kind: kind}
			s.happened[kind] = h
		}
		h.Schedules++
		if h.Shortest == nil || before(path[:taken], h.Shortest.path) {
			f := s.finding(breach{property: kind, detail: "PostgreSQL ended a transaction"}, path[:taken])
			h.Shortest = &f
		}
	}
}

// before reports whether a reads better than b: it is shorter, or clients come in
// their order.
func before(a, b []choice) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return slices.CompareFunc(a, b, func(x, y choice) int { return x.id - y.id }) < 0
}

// serially is what the strategy leaves behind where nobody gets in anybody's way.
func (w *sqlWorld) serially() (*normal, error) {
	n := &normal{immortal: map[string]bool{}}
	if err := w.begin(); err != nil {
		return nil, errors.Join(err, w.end())
	}
	for range maxSerialSteps {
		next := w.enabled(false)
		if len(next) == 0 {
			break
		}
		if err := w.step(next[0]); err != nil {
			return nil, errors.Join(err, w.end())
		}
		if w.lowest == "" {
			continue
		}
		low, err := w.negatives()
		if err != nil {
			return nil, errors.Join(err, w.end())
		}
		n.negative = n.negative || low != ""
	}
	return n, w.end()
}

func newSQLSearch(ctx context.Context, sel strategies.Selection, cfg Config) (*sqlSearch, error) {
	w, err := newSQLWorld(ctx, sel, cfg)
	if err != nil {
		return nil, err
	}
	n, err := w.serially()
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return &sqlSearch{
		sqlWorld: w, normal: n, wanted: map[Property]bool{},
		found: map[Property]*Finding{}, happened: map[Property]*Happening{},
	}, nil
}
