package choose

import (
	"context"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// Result is the answer, with the records that it rests on.
type Result struct {
	results.Choice
	// Exploration holds all searches.
	Exploration results.Exploration
	// Simulations and Runs have the runs and the workloads of the stages, by the stage's name.
	// What else belongs to a record, such as the machine, is the caller's to add.
	Simulations, Runs map[string]results.File
}

// contender is a strategy on its way through the stages.
type contender struct {
	sel strategies.Selection
	// ruledOut and untested are how it left; nil as long as it has not.
	ruledOut *results.Evidence
	untested *results.Untested
	evidence []results.Evidence
	caveats  []string
	// deployment says where its stores have to be.
	deployment string
	modelled   int64 // 99th percentile over regions in nanoseconds
	// crossing and paced are its summaries under contention and at the rate.
	crossing, paced *results.Summary
	// p99Counts is set if the p99 at the rate does, and unsearched if no search
	// could be made.
	p99Counts, unsearched bool
}

func (c *contender) in() bool { return c.ruledOut == nil && c.untested == nil }

// shows adds what speaks for it. The text of the evidence says where that was seen.
func (c *contender) shows(e results.Evidence, what string) {
	e.Text = format.Join(": ", e.Text, what)
	c.evidence = append(c.evidence, e)
}

// ruleOut has it leave for a reason.
func (c *contender) ruleOut(e results.Evidence, what string) {
	e.Text = format.Join(": ", e.Text, what)
	c.ruledOut = &e
}

// chooser is a choice under way.
type chooser struct {
	cfg *Config
	all []*contender
	res *Result
	end int64 // of the budget, on the clock
	// referencePerS is what a bare client's loop reached here; 0 if there was none.
	referencePerS float64
}

// stage is a part of the choice. share is that of the time that is left which it may
// take.
type stage struct {
	name  string
	share float64
	asked bool
	run   func(ctx context.Context, in []*contender) error
}

// The names of the stages.
const (
	stageDeclared   = "declarations"
	stageSearch     = "search"
	stageRegions    = "simulation"
	stageContention = "contention"
	stageBoundary   = "boundary"
	stageOutage     = "outage"
	stageRate       = "rate"
	stagePromise    = "promises"
)

// Run answers the question. When the budget ends, or ctx, the answer is what is known by
// then: strategies that have not been through all stages are not tested.
//
// An error means that the question is wrong, or that a stage could not run at all.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	c, err := newChooser(cfg)
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, c.cfg.Budget)
	defer cancel()
	for _, s := range c.stages() {
		if err := c.through(within, s); err != nil {
			return nil, err
		}
	}
	c.res.Interrupted = ctx.Err() != nil
	c.conclude()
	return c.res, nil
}

// newChooser is a choice that has not begun.
func newChooser(cfg Config) (*chooser, error) {
	if err := cfg.Complete(); err != nil {
		return nil, err
	}
	c := &chooser{cfg: &cfg, end: clock.Nano() + int64(cfg.Budget), res: &Result{
		Choice: results.Choice{
			Schema: results.ChoiceSchema, Kind: "choice", Question: cfg.question(),
			Candidates: []results.Candidate{}, Others: []results.Candidate{}, RuledOut: []results.RuledOut{},
			NotTested: []results.Untested{}, Stages: []results.Stage{}, Notes: []string{},
		},
		Exploration: results.NewExploration(), Simulations: map[string]results.File{}, Runs: map[string]results.File{},
	}}
	for _, s := range cfg.Strategies {
		c.all = append(c.all, &contender{sel: s})
	}
	return c, nil
}

// stages are those of the question, the cheap ones first.
func (c *chooser) stages() []stage {
	return []stage{
		{stageDeclared, 1, true, c.declared},
		{stageSearch, 0.4, true, c.search},
		{stageRegions, 0.4, c.simulates(), c.regions},
		{stageContention, 0.4, true, c.contention},
		{stageBoundary, 0.3, c.crossesWindows(), c.boundaries},
		{stageOutage, 0.5, c.cfg.Outage != OutageAny, c.outage},
		{stageRate, 0.9, true, c.atRate},
		{stagePromise, 1, true, c.promises},
	}
}

// left is the time until the budget ends.
func (c *chooser) left() time.Duration { return max(0, time.Duration(c.end-clock.Nano())) }

// still are the contenders that have not left.
func (c *chooser) still() (in []*contender) {
	for _, x := range c.all {
		if x.in() {
			in = append(in, x)
		}
	}
	return in
}

// through takes those that are left through a stage. What it does not come to is not
// tested.
func (c *chooser) through(ctx context.Context, s stage) error {
	in := c.still()
	if !s.asked || len(in) == 0 {
		return nil
	}
	share := time.Duration(s.share * float64(c.left()))
	c.cfg.Observer.Stage(s.name, len(in))
	within, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	if err := s.run(within, in); err != nil && within.Err() == nil {
		return err
	}
	record := results.Stage{Name: s.name, Entered: len(in), Cut: within.Err() != nil && s.share < 1}
	for _, x := range in {
		if x.in() {
			record.Left++
		}
	}
	c.res.Stages = append(c.res.Stages, record)
	return nil
}

// selections are those of contenders.
func selections(in []*contender) (out []strategies.Selection) {
	for _, x := range in {
		out = append(out, x.sel)
	}
	return out
}
