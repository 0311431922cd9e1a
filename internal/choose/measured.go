package choose

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/answer"
	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/stat"
	"github.com/quotabench/quotabench/quota/trouble"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// What runs are made of.
const (
	workers         = 50
	rounds          = 2
	overhead        = 400 * time.Millisecond // of a run, for servers and reference loops
	shortest        = 100 * time.Millisecond
	longest         = 250 * time.Millisecond
	briskWorkers    = 8
	boundaryFor     = 400 * time.Millisecond
	boundarySubject = 4
	boundaryLimit   = 20 // requests' worth
	outageFor       = 600 * time.Millisecond
	rateRounds      = answer.FirstLook // enough to put strategies in order by their p99
	leastRateFor    = 150 * time.Millisecond
	mostRateFor     = time.Second
	uploadLife      = 50 * time.Millisecond
	uploadFor       = 500 * time.Millisecond
	uploadAbandoned = 0.1
	uploadHold      = 50 * time.Millisecond
	uploadSubjects  = 4
)

// runs is a measurement of contenders, without its load.
func (c *chooser) runs(in []*contender, workload string, d time.Duration) (cfg measure.Config, err error) {
	cfg = measure.Config{Plan: harness.Plan{
		Strategies: selections(in), Policy: c.cfg.crossed(), Seed: c.cfg.Seed, Workers: workers, Instances: c.cfg.total(),
		Duration: d, Stores: c.cfg.Stores, Load: harness.Closed(),
	}, Rounds: rounds, Observer: watcher{measure.Silent, c.cfg.Observer}}
	if c.cfg.Settles {
		// Abandoned work ends within the run, so that what is never given back shows.
		cfg.Life, cfg.Duration = uploadLife, max(d, uploadFor)
		cfg.Stream.Set("abandon-share", uploadAbandoned)
		cfg.Stream.Set("subjects", uploadSubjects)
		cfg.Stream.Set("hold", uploadHold)
	}
	cfg.Workload, err = c.cfg.workload(workload)
	_, redis := c.cfg.Stores.Get(string(strategies.NeedRedis))
	cfg.NoReference = !redis
	if c.cfg.brisk > 0 {
		cfg.Workers, cfg.NoReference = briskWorkers, true
	}
	return cfg, err
}

// watcher tells an observer which run starts.
type watcher struct {
	measure.Observer
	to Observer
}

// Running implements [measure.Observer].
func (w watcher) Running(s string, _, _ int) { w.to.Doing(s) }

// measured runs contenders and returns their summaries; nil for those that the time did
// not suffice for.
func (c *chooser) measured(ctx context.Context, name string, cfg measure.Config) (map[string]*results.Summary, error) {
	if c.cfg.brisk > 0 {
		cfg.Rounds, cfg.Duration = 1, c.cfg.brisk
	}
	report, err := measure.Measure(ctx, cfg)
	if report == nil {
		return nil, err
	}
	c.res.Runs[name] = record(report.Runs, cfg.Workload.Name, report.Info.Notes, cfg.Notes())
	return whole(report.Runs), nil
}

// record is what a stage leaves.
func record(runs []results.Run, workload string, notes ...[]string) results.File {
	return results.File{Runs: runs, Workload: results.Workload{Name: workload, Notes: slices.Concat(notes...)}}
}

// whole are the summaries of strategies that had a run to its end, by label.
func whole(runs []results.Run) map[string]*results.Summary {
	out := map[string]*results.Summary{}
	all := results.Summarise(runs)
	for i := range all {
		if all[i].Partial < all[i].Rounds {
			out[all[i].Label] = &all[i]
		}
	}
	return out
}

// ran reports whether a run says something of a contender. If not, that is a caveat.
func (x *contender) ran(s *results.Summary, where string) bool {
	switch {
	case s == nil:
		x.caveats = append(x.caveats, "not measured "+where+": the time for that was up")
		return false
	case !s.Counts():
		x.caveats = append(x.caveats, "its run "+where+" does not count: "+s.Audit.Discarded())
		return false
	}
	return true
}

// contention runs contenders with callers that never pause.
func (c *chooser) contention(ctx context.Context, in []*contender) error {
	cfg, err := c.runs(in, hotKey, c.perRun(ctx, len(in)*rounds))
	if err != nil {
		return err
	}
	found, err := c.measured(ctx, stageContention, cfg)
	var references []float64
	for _, x := range in {
		s := found[x.sel.String()]
		if s != nil {
			x.crossing = s
		}
		c.judge(x, s, runText(x.sel, &cfg), "under contention")
	}
	for _, r := range c.res.Runs[stageContention].Runs {
		if r.ReferencePerS > 0 {
			references = append(references, r.ReferencePerS)
		}
	}
	c.referencePerS = stat.Median(references)
	return err
}

// unmeasured has a contender leave if a run says nothing of it, and reports whether it does.
func (x *contender) unmeasured(s *results.Summary, before, run, command string) bool {
	switch {
	case s == nil:
		x.leave("the time for the runs was up before "+before+longer, command)
	case !s.Counts():
		x.leave("its run "+run+" does not count: "+s.Audit.Discarded(), command)
	}
	return !x.in()
}

// judge has a contender go on, or leave, by what a run says of it.
func (c *chooser) judge(x *contender, s *results.Summary, command, where string) {
	if x.unmeasured(s, "it was measured "+where, where, command) {
		return
	}
	e := results.Evidence{Kind: results.EvidenceMeasured, Text: where, Command: command}
	against, text, left := c.breaks(s), holds(s), stranded(s)
	if c.cfg.Settles && against == "" && left > c.cfg.largest() {
		against = fmt.Sprintf("counts %s at rest that no caller holds, after work was abandoned; the limit is %s",
			format.Units(left, s.Params.Unit), format.Count(s.Params.Limit))
	}
	if against != "" {
		x.ruleOut(e, against)
		return
	}
	if c.cfg.Settles {
		text += fmt.Sprintf(", and %s counted at rest that no caller holds", format.Units(left, s.Params.Unit))
	}
	x.shows(e, text)
	if s.Leak.Trials == 0 {
		x.caveats = append(x.caveats, "too slow here for a limit to be passed "+where)
	}
}

// stranded are the units that a strategy counts at rest, after its jobs, beyond what the
// truth explains.
func stranded(s *results.Summary) int64 {
	t, ok := s.AfterJobs()
	if !ok {
		if t, ok = s.AtRest(); !ok {
			return 0
		}
	}
	return max(0, t.Units)
}

// crossesWindows reports whether a run can be placed across the end of a window.
func (c *chooser) crossesWindows() bool {
	return c.cfg.Policy.Window.Kind.Tumbling() && !c.cfg.Settles
}

// boundaries runs contenders across the end of a window.
func (c *chooser) boundaries(ctx context.Context, in []*contender) error {
	cfg, err := c.runs(in, boundary, boundaryFor)
	if err != nil {
		return err
	}
	cfg.Rounds = 1
	cfg.Policy.Limit = min(cfg.Policy.Limit, max(boundaryLimit*c.cfg.largest(), 4*c.cfg.TolerateLeak))
	cfg.Stream.Set("subjects", boundarySubject)
	found, err := c.measured(ctx, stageBoundary, cfg)
	const where = "across the end of a window"
	for _, x := range in {
		if s := found[x.sel.String()]; x.ran(s, where) { // if not, a search or a simulation has seen windows end
			c.judge(x, s, runText(x.sel, &cfg), where)
		}
	}
	return err
}

// perRun is how long each of so many runs can take until the context ends.
func (c *chooser) perRun(ctx context.Context, runs int) time.Duration {
	left := c.left()
	if end, ok := ctx.Deadline(); ok {
		left = end.Sub(clock.Time(clock.Nano()))
	}
	return min(longest, max(shortest, left/time.Duration(max(1, runs))-overhead)).Round(10 * time.Millisecond)
}

// outage runs contenders while Redis is away for a third of the time.
func (c *chooser) outage(ctx context.Context, in []*contender) error {
	var with []*contender
	gone := map[string]bool{}
	for _, x := range in {
		if needs := x.sel.RedisNeeds(); len(needs) > 0 {
			with = append(with, x)
			for _, n := range needs {
				gone[string(n)] = true
			}
			continue
		}
		x.shows(declares("needs no Redis"), "")
	}
	if len(with) == 0 {
		return nil
	}
	cfg, err := c.runs(with, hotKey, outageFor)
	if err != nil {
		return err
	}
	cfg.Rounds, cfg.NoReference = 1, true
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		cfg.Trouble = append(cfg.Trouble, trouble.MustParse(name+":away@0.3-0.6")...)
	}
	found, err := c.measured(ctx, stageOutage, cfg)
	for _, x := range with {
		alone := cfg
		alone.Trouble = slices.DeleteFunc(slices.Clone(cfg.Trouble), func(e trouble.Event) bool {
			return !slices.Contains(x.sel.RedisNeeds(), strategies.Need(e.Where.Name))
		})
		c.afterOutage(x, found[x.sel.String()], runText(x.sel, &alone))
	}
	return err
}

// mostUnanswered is the share of requests in percent that may end in errors, or be
// rejected wrongly, if decisions are to go on: what is on its way when the connection
// breaks is lost.
const mostUnanswered = 1

// afterOutage has a contender go on, or leave, by what it did while Redis was away.
func (c *chooser) afterOutage(x *contender, s *results.Summary, command string) {
	if x.unmeasured(s, "Redis was taken away from it", "with an outage", command) {
		return
	}
	e := results.Evidence{Kind: results.EvidenceMeasured, Text: "while Redis is away for a third of the run", Command: command}
	failed, rejected := results.Percent(s.Errors, s.Issued), s.FalseRejects.PctOfValid
	switch o := c.cfg.Outage; {
	case o.answers() && failed > mostUnanswered:
		x.ruleOut(e, format.Pct(failed)+" of the requests end in an error")
	case o.answers() && rejected > mostUnanswered:
		x.ruleOut(e, fmt.Sprintf("rejects %s of valid requests", format.Pct(rejected)))
	case o.holds() && s.Leak.WorstUnits > c.cfg.TolerateLeak:
		x.ruleOut(e, fmt.Sprintf("over-admits, %s beyond the limit in the worst window", format.Units(s.Leak.WorstUnits, s.Params.Unit)))
	default:
		x.shows(e, fmt.Sprintf("%s, %s errors and %s false rejects", holds(s), format.Pct(failed), format.Pct(rejected)))
	}
}

// batch is how many contenders are measured at the rate together, in rounds.
const batch = 4

// atRate runs contenders at the rate that is asked for, or as much of it as this machine
// can be asked for. The cheapest come first, so that the time suffices for the candidates.
func (c *chooser) atRate(ctx context.Context, in []*contender) error {
	subjects := min(c.cfg.Subjects, mostSubjects)
	if subjects < c.cfg.Subjects {
		c.remark("measured with %s of %s subjects, to save the time of setting them up",
			format.Count(subjects), format.Count(c.cfg.Subjects))
	}
	if rate := c.rate(); rate < c.cfg.Rate {
		c.remark("%s requests per second are more than this machine can show: a bare client's INCR loop reaches %s here, "+
			"next to the harness; measured at %s, and nothing is said of more",
			format.Count(int64(c.cfg.Rate)), format.Count(int64(c.referencePerS)), format.Count(int64(rate)))
	}
	all := results.File{Runs: []results.Run{}}
	for some := range slices.Chunk(c.cheapestFirst(in), batch) {
		cfg, err := c.runs(some, steady, c.rateFor())
		if err != nil {
			return err
		}
		cfg.Policy, cfg.Load = c.cfg.Policy, harness.OpenAt(c.rate())
		cfg.Rounds, cfg.Workers, cfg.Life = rateRounds, openWorkers, 0
		cfg.Stream.Options = nil
		cfg.Stream.Set("subjects", strconv.FormatInt(subjects, 10))
		var found map[string]*results.Summary
		if ctx.Err() == nil {
			if found, err = c.measured(ctx, stageRate, cfg); err != nil {
				return err
			}
		}
		all.Runs, all.Workload = append(all.Runs, c.res.Runs[stageRate].Runs...), c.res.Runs[stageRate].Workload
		delete(c.res.Runs, stageRate)
		for _, x := range some {
			c.timed(x, found[x.sel.String()], &cfg)
		}
	}
	if len(all.Runs) > 0 {
		c.res.Runs[stageRate] = all
	}
	return nil
}

// note adds what the figures do not cover.
func (c *chooser) remark(text string, args ...any) {
	c.res.Notes = append(c.res.Notes, fmt.Sprintf(text, args...))
}

// mostSubjects is how many subjects runs at the rate have.
const mostSubjects = DefaultSubjects

// rateFor is how long a round is, of which all together are long enough for a 99th percentile:
// that takes 368 requests.
func (c *chooser) rateFor() time.Duration {
	const requests = 1200 / rateRounds
	return min(mostRateFor, max(leastRateFor, time.Duration(requests/c.rate()*float64(time.Second))))
}

// openWorkers is how many requests may be in service at once at a rate.
const openWorkers = 200

// rate is what is asked for, or half of what a bare client reaches here.
func (c *chooser) rate() float64 {
	if c.referencePerS == 0 || c.cfg.Rate <= c.referencePerS/2 {
		return c.cfg.Rate
	}
	return max(1, math.Floor(c.referencePerS/2/100)*100)
}

// breaks says in which way a summary passes what is tolerated; "" if it does not. How
// bad a strategy is, and the words for it, are those of package answer.
func (c *chooser) breaks(s *results.Summary) string {
	a := answer.Classify(s)
	switch {
	case s.Leak.WorstUnits > c.cfg.TolerateLeak || s.FalseRejects.Count > 0:
		return a.Reason
	case (a.Group == answer.Unusable || a.Group == answer.Undecided) && s.Leak.Trials > 0:
		return a.Reason
	default:
		return ""
	}
}

// holds says what a summary shows if it breaks nothing.
func holds(s *results.Summary) string {
	switch {
	case s.Leak.Trials == 0:
		return "no request was rejected wrongly, and no limit was passed"
	case s.Leak.Units > 0:
		return fmt.Sprintf("over-admits %s at most in %s", format.Units(s.Leak.WorstUnits, s.Params.Unit),
			format.Number(s.Leak.Trials, "trial"))
	default:
		return "no leak in " + format.Number(s.Leak.Trials, "trial")
	}
}
