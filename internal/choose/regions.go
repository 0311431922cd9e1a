package choose

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/quota/trouble"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// What a simulation is made of.
const (
	simulatedSubjects = 100
	mostHalf          = 10 * time.Minute // of virtual time on either side of a window's end
	standingFor       = 10 * time.Minute
)

// simulates reports whether virtual time can show what no other stage does: regions,
// and windows that end.
func (c *chooser) simulates() bool {
	return c.cfg.Regions > 1 || c.cfg.Policy.Window.Kind != quota.Standing
}

// Where the stores of a simulation with several regions are.
const (
	redisInEach = "a Redis in each region"
	redisInOne  = "one Redis for all regions"
	sqlInOne    = "one PostgreSQL for all regions"
)

// regions simulates the contenders, with a Redis in each region, and those that this
// rules out once more with one for all.
func (c *chooser) regions(ctx context.Context, in []*contender) error {
	cfg, err := c.simulation(false)
	if err != nil {
		return err
	}
	var able []*contender
	for _, x := range in {
		if err := cfg.CannotRun(x.sel); err == nil {
			able = append(able, x)
		} else {
			c.notSimulated(x, err)
		}
	}
	first, err := c.simulate(ctx, stageRegions, cfg, able)
	if err != nil || c.cfg.Regions == 1 {
		for _, x := range able {
			x.take(first[x], "")
		}
		return err
	}
	var again []*contender
	for _, x := range able {
		if first[x].against && len(x.sel.RedisNeeds()) > 0 {
			again = append(again, x)
			continue
		}
		x.take(first[x], redisInEach)
	}
	if cfg, err = c.simulation(true); err != nil {
		return err
	}
	second, err := c.simulate(ctx, stageRegions+"-one-redis", cfg, again)
	for _, x := range again {
		if second[x].against || second[x].Kind == "" {
			x.take(first[x], "") // the first reason
			continue
		}
		x.take(second[x], redisInOne)
		x.caveats = append(x.caveats, "simulated "+first[x].Text)
	}
	return err
}

// notSimulated is what becomes of a contender that has no virtual time. All decisions of
// one that needs PostgreSQL alone are made by one server, wherever they come from.
func (c *chooser) notSimulated(x *contender, why error) {
	if c.cfg.Regions == 1 {
		return // the end of a window is measured
	}
	other := func(n strategies.Need) bool { return !strings.HasPrefix(string(n), string(strategies.NeedPostgres)) }
	if len(x.sel.Needs) > 0 && !slices.ContainsFunc(x.sel.Needs, other) {
		x.deployment = sqlInOne
		x.caveats = append(x.caveats, "not simulated over regions: one PostgreSQL decides, and the way to it from "+
			"another region is not in its p99")
		return
	}
	x.leave("over regions: "+why.Error(), "")
}

// simulated is what a simulation says of a strategy; the zero value if there was no time for it.
type simulated struct {
	results.Evidence
	against  bool
	modelled int64
	invalid  string
}

// take has a contender go on, or leave, by what a simulation says of it.
func (x *contender) take(s simulated, deployment string) {
	switch {
	case s.Kind == "":
		x.leave("the time for the simulation was up"+longer, "")
	case s.invalid != "":
		x.leave("its simulation does not count: "+s.invalid, s.Command)
	case s.against:
		x.ruleOut(s.Evidence, "")
	default:
		x.shows(s.Evidence, "")
		if x.deployment = deployment; deployment != "" {
			x.modelled = s.modelled
		}
	}
}

// simulation is over the end of a window if there is one, in as many regions as are
// asked for. Every subject is asked for twice its limit per window.
func (c *chooser) simulation(sharedRedis bool) (cfg sim.Config, err error) {
	p := c.cfg.crossed()
	cfg = sim.Config{Plan: harness.Plan{Policy: p, Seed: c.cfg.Seed, Instances: c.cfg.Instances}, Every: -1}
	if cfg.Workload, err = c.cfg.workload(steady); err != nil {
		return cfg, err
	}
	mean, subjects := mean(&p), int64(simulatedSubjects)
	perWindow := 2 * float64(p.Limit) / mean
	base := time.Date(2026, time.February, 15, 0, 0, 0, 0, time.UTC)
	window := standingFor
	switch w := p.Window; {
	case w.Kind.Tumbling():
		span := w.At(base)
		window = min(mostHalf, span.End.Sub(span.Start)/2)
		cfg.Start, cfg.Duration = span.End.Add(-window), 2*window
	case w.Kind.HasLength():
		window = w.RealLength()
		if w.Kind == quota.Bucket {
			perWindow = 2 * float64(max(p.Limit, w.Refill)) / mean
		}
		cfg.Start, cfg.Duration = base, 5*window/2
	default:
		cfg.Start, cfg.Duration = base, window
	}
	cfg.Load = harness.OpenAt(math.Max(1, math.Round(100*perWindow*float64(subjects)/window.Seconds())/100))
	cfg.Stream.Set("subjects", subjects)
	if c.cfg.Regions > 1 {
		for i := range c.cfg.Regions {
			cfg.Topology.Regions = append(cfg.Topology.Regions, fmt.Sprintf("region-%d", i+1))
		}
		if named := sim.ADR005Regions(); c.cfg.Regions == len(named) {
			cfg.Topology.Regions = named
		}
		cfg.Topology.SharedRedis = sharedRedis
	}
	if c.cfg.Skew > 0 {
		for i := 1; i < c.cfg.total(); i += 2 { // every other clock is ahead
			cfg.Trouble = append(cfg.Trouble, trouble.ClockAhead(i, c.cfg.Skew))
		}
	}
	return cfg, nil
}

// mean is the mean cost of a request in units.
func mean(p *quota.Policy) float64 {
	if len(p.Costs) == 0 {
		return 1
	}
	var sum int64
	for _, c := range p.Costs {
		sum += c
	}
	return float64(sum) / float64(len(p.Costs))
}

// simulate runs contenders in virtual time.
func (c *chooser) simulate(ctx context.Context, name string, cfg sim.Config, in []*contender) (map[*contender]simulated, error) {
	out := map[*contender]simulated{}
	if len(in) == 0 {
		return out, nil
	}
	cfg.Strategies = selections(in)
	cfg.SoFar = func(runs []results.Run) { c.cfg.Observer.Doing(runs[len(runs)-1].Params.Label) }
	report, err := sim.Run(ctx, cfg)
	if report == nil {
		return out, err
	}
	c.res.Simulations[name] = record(report.Runs, cfg.Workload.Name, report.Info.Notes, cfg.Notes())
	found := whole(report.Runs)
	for _, x := range in {
		if s := found[x.sel.String()]; s != nil {
			out[x] = c.verdict(s, simText(x.sel, &cfg), c.deployed(x, cfg.Topology.SharedRedis))
		}
	}
	return out, nil
}

// deployed says where the Redis of a contender are; "" in one region, and without Redis.
func (c *chooser) deployed(x *contender, shared bool) string {
	switch {
	case c.cfg.Regions == 1 || len(x.sel.RedisNeeds()) == 0:
		return ""
	case shared:
		return redisInOne
	default:
		return redisInEach
	}
}

// verdict is what a summary of virtual time says.
func (c *chooser) verdict(s *results.Summary, command, deployment string) (v simulated) {
	v.Evidence = results.Evidence{Kind: results.EvidenceSimulated, Command: command}
	if !s.Counts() {
		v.invalid = s.Audit.Discarded()
		return v
	}
	v.modelled = int64(s.Latency().P99.Value)
	where := "in virtual time"
	if c.cfg.Regions > 1 {
		where = fmt.Sprintf("over %d regions", c.cfg.Regions)
	}
	if deployment != "" {
		where += " with " + deployment
	}
	what := c.breaks(s)
	if what == "" && c.cfg.P99 > 0 && c.cfg.Regions > 1 && v.modelled > int64(c.cfg.P99) {
		what = fmt.Sprintf("takes %s at p99, with modelled latencies", format.NS(float64(v.modelled)))
	}
	v.against = what != ""
	v.Text = where + ": " + cmp.Or(what, holds(s))
	return v
}
