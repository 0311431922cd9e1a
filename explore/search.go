package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/explore/internal/foreign"
	"github.com/quotabench/quotabench/explore/internal/inproc"
	"github.com/quotabench/quotabench/explore/internal/postgres"
	"github.com/quotabench/quotabench/explore/internal/service"
	"github.com/quotabench/quotabench/internal/contain/guard"
	"github.com/quotabench/quotabench/internal/contain/isolate"
	"github.com/quotabench/quotabench/internal/contain/witness"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/stacks"
	"github.com/quotabench/quotabench/internal/virtual/sched"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// Errors of explorations.
var (
	// ErrNotDeterministic says that a strategy took another way in the second run of
	// one schedule: it depends on something that the explorer does not control.
	ErrNotDeterministic = engine.ErrNotDeterministic
	// ErrUnseen says that not all of the strategy's work was seen, so nothing
	// may be claimed. It comes with the result, of which Withheld has the reasons.
	ErrUnseen = errors.New("nothing may be claimed")
)

// PanicError says that the strategy has panicked. Its Stack is apart from its
// message.
type PanicError = engine.PanicError

// HungError says that the strategy has blocked outside of what a search sees.
type HungError = guard.HungError

// Result is what a search found.
type Result = results.Search

// Finding is a schedule that breaks a property.
type Finding = results.Finding

// Run searches for the shortest schedule that breaks each property. It returns
// with what it has when ctx is done. An error that is [ErrUnseen] comes with a result,
// and so does a [PanicError] or a [HungError] with which the strategy has ended the
// search: the result is what was found before that, and claims nothing. Any other means
// that it could not search.
func Run(ctx context.Context, sel strategies.Selection, cfg Config) (*Result, error) {
	cfg, err := cfg.Complete(sel)
	if err != nil {
		return nil, err
	}
	cfg.sofar = cmp.Or(cfg.sofar, new(progress))
	if cfg.isolates(sel) {
		return runInChild(ctx, sel, &cfg)
	}
	cfg.began = clock.Nano()
	res, err := explored(ctx, sel, cfg, func(s *search) (*Result, error) { return s.run(ctx) })
	if err != nil {
		return cfg.sofar.partial(ctx, sel, cfg, err), err
	}
	return res, unseen(res.Withheld)
}

// explored runs f over the engine that the strategy is for.
func explored[T any](ctx context.Context, sel strategies.Selection, cfg Config,
	f func(*search) (T, error)) (res T, err error) {
	gaveUp := make(chan struct{})
	defer close(gaveUp)
	cfg.gaveUp = gaveUp
	opened := func(e engine.Engine, err error) (res T, _ error) {
		if err != nil {
			return res, err
		}
		res, err = f(newSearch(e, sel, cfg))
		return res, errors.Join(err, e.Close())
	}
	if cfg.Service != "" {
		processes, err := service.Open(ctx, sel, *cfg.setup(), cfg.command())
		if err == nil && !processes.Stopped() {
			cfg.ServiceClock = ""
		}
		return opened(processes, err)
	}
	if sel.Foreign {
		trail, err := isolate.OpenTrail()
		if err != nil {
			return res, err
		}
		defer func() { err = errors.Join(err, trail.Close()) }()
		return foreign.Search(sel, *cfg.setup(), func(e *foreign.Engine) (T, error) {
			if trail != nil {
				return f(newSearch(&trailed{Engine: e, trail: trail}, sel, cfg))
			}
			return f(newSearch(e, sel, cfg))
		})
	}
	if !OnPostgres(sel) {
		return watched(ctx, &cfg, func(setup *engine.Setup) (T, error) {
			return inproc.Search(sel, *setup, func(e *inproc.Engine) (T, error) { return f(newSearch(e, sel, cfg)) })
		})
	}
	return opened(postgres.Open(ctx, sel, *cfg.setup(), cfg.Postgres))
}

// watched runs f over an engine in this process, and gives it up if the strategy
// blocks outside of that.
func watched[T any](ctx context.Context, cfg *Config, f func(*engine.Setup) (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	setup := cfg.setup()
	setup.Beat = new(sched.Beat)
	r, err := guard.Watched(ctx, guard.Watchdog{
		Patience: cfg.DecisionTimeout, Beat: setup.Beat,
		Callers: []string{"engine.(*Client).take", "engine.(*Client).commit", "engine.(*Client).refund", "sched.runJob"},
		Around: []string{"inproc.(*Engine).open", "inproc.(*Engine).Begin", "inproc.(*Engine).Used",
			"inproc.(*Engine).screen"},
	}, func() (r result) {
		r.v, r.err = f(setup)
		return r
	})
	return r.v, errors.Join(r.err, err)
}

// search looks for schedules over an engine.
type search struct {
	engine.Engine
	*engine.World
	sel    strategies.Selection
	cfg    Config
	normal *normal
	// wanted are the properties that no schedule has broken so far.
	wanted map[Property]bool
	// applied are the faults that a step of some schedule has injected.
	applied map[quota.Fault]bool
	// short has a schedule that is run again left where it ends: the strategy does not
	// survive what follows.
	short bool
	// traced is set while footprints are asked for.
	traced bool
	// symmetric is set if clients are left out that could as well be another one. Strategies of this module do not decide
	// by the number of an instance or of a request; what others do is not known.
	symmetric bool
	// halves is set if the part of the search that is under way has half of the time.
	halves bool
	// atFirst is set once the search has ended at its first finding, as it was to.
	atFirst bool
}

func newSearch(e engine.Engine, sel strategies.Selection, cfg Config) *search {
	return &search{Engine: e, World: e.Common(), sel: sel, cfg: cfg, wanted: map[Property]bool{},
		applied:   map[quota.Fault]bool{},
		symmetric: stacks.InCatalogue(sel.Open) && !cfg.enumerates && cfg.Service == ""}
}

// breakage is a finding with its schedule.
type breakage struct {
	results.Finding
	path []engine.Choice
}

// tally is what a part of a search has counted.
type tally struct {
	runs, pruned int64
	// left is how many steps were not tried, since it was known what they lead to.
	left int64
	// waiting counts schedules in which a client waited for a lock.
	waiting        int64
	leaking, worst int64 // schedules that leak, and by how many units
	states, depth  int
	capped         string // why it was ended
}

// into puts what the first part has counted into the result.
func (t *tally) into(res *Result) {
	res.Runs = t.runs
	res.Pruned = t.pruned
	res.LeftOut = t.left
	res.States = t.states
	res.Depth = t.depth
	res.Capped = t.capped
	res.Waited = t.waiting
}

// bounded is what the second part has counted, which has tried all schedules of so many preemptions; none if that is
// negative.
func (t *tally) bounded(preemptions int) *results.Bounded {
	bounded := &results.Bounded{States: t.states, Runs: t.runs, Depth: t.depth, Capped: t.capped}
	if preemptions >= 0 {
		bounded.Preemptions = &preemptions
	}
	return bounded
}

// show repeats what is broken, the weightiest first, and puts it into the result.
func (s *search) show(res *Result, broken []breakage) error {
	slices.SortStableFunc(broken, byProperty)
	for i := range broken {
		if err := s.repeat(&broken[i]); err != nil {
			return err
		}
		res.Findings = append(res.Findings, broken[i].Finding)
	}
	return nil
}

// byProperty orders findings.
func byProperty(a, b breakage) int {
	return slices.Index(properties, a.Property) - slices.Index(properties, b.Property)
}

func (s *search) run(ctx context.Context) (*Result, error) {
	if err := s.serially(); err != nil {
		return nil, err
	}
	if err := s.orders(); err != nil {
		return nil, err
	}
	res := s.newResult()
	for _, property := range res.Properties {
		s.wanted[property] = property != TTL || hasEnd(&s.cfg.Policy)
	}
	var err error
	s.cfg.sofar.note(res, nil, nil)
	if s.Traits.State {
		err = s.overStates(ctx, res)
	} else {
		err = s.allToTheirEnds(ctx, res)
	}
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.sample(ctx, res), s.doubt(ctx, res)); err != nil {
		return nil, err
	}
	if err := s.probe(); err != nil {
		return nil, err
	}
	s.acquit(ctx)
	s.conclude(res)
	return res, nil
}

// goTo runs a schedule from the start.
func (s *search) goTo(path []engine.Choice) error {
	if err := s.Begin(); err != nil {
		return err
	}
	for _, choice := range path {
		if err := s.Step(choice); err != nil {
			return err
		}
	}
	return nil
}

// at runs a schedule, calls f where it has led to, and ends the run.
func (s *search) at(path []engine.Choice, f func() error) error {
	err := s.goTo(path)
	if err == nil {
		err = f()
	}
	return errors.Join(err, s.End())
}

// drive runs the schedule that next chooses step by step, calls look after each step, and ends the run.
func (s *search) drive(next func() (engine.Choice, bool), look func(engine.Choice) error) error {
	err := s.Begin()
	for err == nil {
		choice, ok := next()
		if !ok {
			break
		}
		err = s.Step(choice)
		if err == nil {
			err = look(choice)
		}
	}
	return errors.Join(err, s.End())
}

// retrace runs a schedule whose last step alone is looked at. trail is what the actors
// remembered before that. several has other steps taken instead of the last one after it.
func (s *search) retrace(path []engine.Choice, trail []engine.Digest, several bool) error {
	if brancher, ok := s.Engine.(engine.Brancher); ok {
		return brancher.Branch(path, trail, several)
	}
	return s.goTo(path)
}

func (s *search) trail() []engine.Digest {
	if brancher, ok := s.Engine.(engine.Brancher); ok {
		return brancher.Trail()
	}
	return nil
}

// repeat runs a counterexample twice more, recorded, and compares.
func (s *search) repeat(b *breakage) error {
	first, err := s.record(b)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotDeterministic, err)
	}
	second, err := s.record(b)
	// If the strategy sends the wall clock's time, that is said in the end.
	if err != nil || !slices.EqualFunc(first, second, s.alike) && !s.Witness.Noted(witness.WallClock) {
		why := "it has random numbers other than those of Env.Rand, or a variable of its package"
		if s.Traits.Wall {
			why = otherThanOrder
		}
		return fmt.Errorf("%w: the schedule of the %s went differently when it was run again: %s", ErrNotDeterministic,
			b.Property, why)
	}
	b.Strategy = s.sel.String()
	b.Policy = s.cfg.policyName()
	b.Steps = first
	b.Token, b.ReplayWith = tokenOf(s.sel, &s.cfg, b.path, b.Property), s.cfg.serviceFlags()
	return nil
}

// alike reports whether steps differ at most in what was sent: the member of a sorted set is
// often a random number, and does not change what happens. On the wall clock it may be the time,
// which is then in replies, too.
func (s *search) alike(a, b results.Step) bool {
	a.Command, b.Command = "", ""
	a.Stored, b.Stored = nil, nil
	if s.Traits.Wall {
		a.Reply, b.Reply = "", ""
	}
	return a.Equal(b)
}

// record runs a schedule and returns its timeline.
func (s *search) record(b *breakage) (steps []results.Step, err error) {
	timeline := &s.Run.Timeline
	timeline.Recording = true
	defer func() { timeline.Recording = false }()
	err = s.at(b.path, func() error {
		timeline.Recording = false
		steps, b.Columns, b.Faults = timeline.Steps, timeline.Columns, s.Look().Faults
		if s.short {
			return nil
		}
		return s.finish()
	})
	return steps, err
}

// finish takes what steps are left, so that a server is left as it was found.
func (s *search) finish() error {
	if s.Traits.State {
		return nil
	}
	return s.settle()
}
