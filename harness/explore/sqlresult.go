package explore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	pgstore "github.com/quotabench/quotabench/stores/postgres"
	"github.com/quotabench/quotabench/strategies"
)

// OnServer is what is known of strategies that are explored on a PostgreSQL
// server, and empty for others.
type OnServer struct {
	// Store names the server.
	Store string `json:"store,omitempty"`
	// Waited counts the schedules in which a client waited for another's lock.
	Waited int64 `json:"schedules_with_waiting,omitempty"`
	// Happenings are what PostgreSQL did to transactions.
	Happenings []Happening `json:"happenings,omitempty"`
}

// runPostgres is [Run] on a PostgreSQL server.
func runPostgres(ctx context.Context, sel strategies.Selection, cfg Config) (*Result, error) {
	s, err := newSQLSearch(ctx, sel, cfg)
	if err != nil {
		return nil, err
	}
	res, err := s.search()
	return res, errors.Join(err, s.close())
}

func (s *sqlSearch) search() (*Result, error) {
	s.symmetric = true
	for _, p := range s.cfg.Properties {
		if p != TTL { // rows have none
			s.wanted[p] = true
		}
	}
	if err := s.walk(s.cfg.MaxStates, math.MaxInt64); err != nil {
		return nil, err
	}
	res := s.newResult()
	res.Properties = slices.DeleteFunc(slices.Clone(res.Properties), func(p Property) bool { return p == TTL })
	res.Split = false // nobody can die, or lose a reply, in between
	res.Store, res.Waited = s.store(), s.waiting
	res.States, res.Runs, res.Depth, res.Capped = s.points+1, s.runs, s.depth, s.capped
	for _, p := range properties {
		if f := s.found[p]; f != nil {
			if err := s.repeat(f); err != nil {
				return nil, err
			}
			res.Findings = append(res.Findings, *f)
		}
	}
	var err error
	res.Happenings, err = s.happenings()
	return res, err
}

// happenings lists what happened, with its shortest schedules run again.
func (s *sqlSearch) happenings() ([]Happening, error) {
	var out []Happening
	for _, kind := range []Property{Deadlock, SerializationFailure} {
		if h := s.happened[kind]; h != nil {
			if err := s.repeat(h.Shortest); err != nil {
				return nil, err
			}
			out = append(out, *h)
		}
	}
	return out, nil
}

// enumeratePostgres is [Enumerate] on a PostgreSQL server.
func enumeratePostgres(ctx context.Context, sel strategies.Selection, cfg Config) (*Census, error) {
	s, err := newSQLSearch(ctx, sel, cfg)
	if err != nil {
		return nil, err
	}
	c, err := s.enumerate()
	return c, errors.Join(err, s.close())
}

func (s *sqlSearch) enumerate() (*Census, error) {
	s.wanted[Leak], s.all = true, true
	if err := s.walk(math.MaxInt, s.cfg.MaxSchedules); err != nil {
		return nil, err
	}
	c := &Census{
		Strategy: s.sel.String(), Policy: s.cfg.Policy.Name, Limit: s.cfg.Policy.Limit, Clients: s.cfg.Clients,
		Schedules: s.runs, Leaking: s.leaking, Worst: s.worstLeak, Complete: s.capped == "",
		OnServer: OnServer{Store: s.store(), Waited: s.waiting},
	}
	if f := s.found[Leak]; f != nil {
		if err := s.repeat(f); err != nil {
			return nil, err
		}
		c.Shortest = f
	}
	var err error
	c.Happenings, err = s.happenings()
	return c, err
}

// store names the server.
func (w *sqlWorld) store() string {
	version, _, _ := strings.Cut(w.pg.Info().Version, " ") // not who packaged it
	return "PostgreSQL " + version
}

// repeat runs a counterexample twice more, recorded, and compares.
func (s *sqlSearch) repeat(f *Finding) error {
	first, _, err := s.again(f.path, nil)
	if err != nil {
		return err
	}
	second, _, err := s.again(f.path, nil)
	if err != nil {
		return err
	}
	if !slices.Equal(first, second) {
		return fmt.Errorf("%w: the schedule of the %s went differently when it was run again", ErrNotDeterministic, f.Property)
	}
	f.Strategy, f.Policy, f.Steps = s.sel.String(), s.cfg.Policy.Name, first
	f.Columns = nil
	for i := range s.cfg.Clients {
		f.Columns = append(f.Columns, clientName(i))
	}
	f.Token = s.token(f.path, f.Property)
	return nil
}

// again runs a schedule, judges its end, and then ends what is under way.
func (s *sqlSearch) again(path []choice, wanted map[Property]bool) (steps []Step, found []breach, err error) {
	if err := s.begin(); err != nil {
		return nil, nil, errors.Join(err, s.end())
	}
	defer func() { err = errors.Join(err, s.end()) }()
	s.recording = true
	for _, c := range path {
		if err := s.step(c); err != nil {
			if errors.Is(err, errMisfit) {
				err = fmt.Errorf("%w: %w", ErrNotDeterministic, err)
			}
			s.recording = false
			return nil, nil, err
		}
	}
	s.recording = false
	steps = s.steps
	if found, err = s.judge(s.normal, wanted); err != nil {
		return nil, nil, err
	}
	for kind := range s.fallen {
		found = append(found, breach{property: kind, detail: "PostgreSQL ended a transaction"})
	}
	s.lastLeak = s.truth.leak()
	for next := s.enabled(false); len(next) > 0; next = s.enabled(false) {
		if err := s.step(next[0]); err != nil {
			return nil, nil, err
		}
	}
	return steps, found, nil
}

// TokenOnPostgres returns the strategy of a token that was issued on a PostgreSQL
// server, which [ReplayOnPostgres] repeats.
func TokenOnPostgres(token string) (sel strategies.Selection, ok bool) {
	t, _, err := parseToken(token)
	if err != nil {
		return sel, false
	}
	chosen, err := strategies.Parse(t.Strategy)
	if err != nil || len(chosen) != 1 || !OnPostgres(chosen[0]) {
		return sel, false
	}
	return chosen[0], true
}

// ReplayOnPostgres is [Replay] for schedules of statements.
func ReplayOnPostgres(ctx context.Context, token string, server *pgstore.Store) (*Replayed, error) {
	t, path, err := parseToken(token)
	if err != nil {
		return nil, err
	}
	sel, cfg, err := t.config(server)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if !OnPostgres(sel) {
		return nil, fmt.Errorf("replay: %w: it was not issued on PostgreSQL", ErrToken)
	}
	s, err := newSQLSearch(ctx, sel, cfg)
	if err != nil {
		return nil, err
	}
	r, err := s.replay(path, t.Property)
	return r, errors.Join(err, s.close())
}

func (s *sqlSearch) replay(path []choice, p Property) (*Replayed, error) {
	f := s.finding(breach{property: p}, path)
	if err := s.repeat(&f); err != nil {
		return nil, err
	}
	_, found, err := s.again(path, map[Property]bool{p: true})
	if err != nil {
		return nil, err
	}
	r := &Replayed{Strategy: s.sel.String(), Policy: s.cfg.Policy.Name, Property: p, Finding: &f, Leak: s.lastLeak, Store: s.store(), Same: true}
	for _, b := range found {
		if b.property == p {
			r.Broken = true
			f.Detail, f.Units = b.detail, b.units
		}
	}
	return r, nil
}
