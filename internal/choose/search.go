package choose

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/groups"
	"github.com/quotabench/quotabench/internal/ordered"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// clients is how many take part in a search, each on an instance of its own as far as
// there are so many.
const clients = 2

// search looks for the shortest schedule that speaks against each contender: first when
// nothing goes wrong, then when time passes, then with the faults of the question.
func (c *chooser) search(ctx context.Context, in []*contender) error {
	var onServer, telling sync.Mutex // searches on PostgreSQL come one after the other
	for i, found := range ordered.Do(runtime.GOMAXPROCS(0), len(in), func(i int) searched {
		if explore.OnPostgres(in[i].sel) {
			onServer.Lock()
			defer onServer.Unlock()
		}
		telling.Lock()
		c.cfg.Observer.Doing(in[i].sel.String())
		telling.Unlock()
		return c.searchOne(ctx, in[i].sel)
	}) {
		x := in[i]
		c.res.Exploration.Searches = append(c.res.Exploration.Searches, found.all...)
		switch {
		case found.against != nil:
			x.ruleOut(*found.against, "")
		case found.failed != nil:
			x.leave(found.failed.Error(), c.exploreCommand(x.sel))
			c.res.Exploration.Failed = append(c.res.Exploration.Failed,
				results.FailedExplore{Strategy: x.sel.String(), Error: format.OneLine(found.failed.Error())})
		case found.unfit != nil:
			c.res.Exploration.Skipped = append(c.res.Exploration.Skipped, results.Skipped{Strategy: x.sel.String(), Reason: found.unfit.Error()})
			x.unsearched = true
			x.caveats = append(x.caveats, "not searched: "+strings.TrimPrefix(found.unfit.Error(), "strategy "+x.sel.Name+" "))
		default:
			x.searched(&found, ctx.Err() != nil)
		}
	}
	c.res.Exploration.Interrupted = ctx.Err() != nil
	return nil
}

// searched is what the searches of one strategy found.
type searched struct {
	all     []*results.Search
	against *results.Evidence
	unfit   error // it cannot be searched
	failed  error // it ended the search, or was not seen
	states  int
	last    *results.Search
	skipped []quota.Fault // that its store cannot be given
}

// searched notes what the searches say for a contender.
func (x *contender) searched(s *searched, cut bool) {
	if s.last == nil {
		x.unsearched = true
		x.caveats = append(x.caveats, "not searched: the time for that was up")
		return
	}
	text := fmt.Sprintf("with %d clients: no order of their commands leaks, in %s of %s", clients,
		format.Number(s.states, "state"), format.Plural(int64(len(s.all)), "search", "searches"))
	if s.last.Store != "" {
		text = fmt.Sprintf("with %d clients: no order of their statements leaks, in %s on a real PostgreSQL", clients,
			format.Number(s.last.Runs, "schedule"))
	}
	x.shows(results.Evidence{Kind: results.EvidenceSchedule, Text: text, Command: exploreText(x.sel, s.last)}, "")
	switch {
	case len(s.skipped) > 0:
		x.caveats = append(x.caveats, fmt.Sprintf("searched without %s, which a real PostgreSQL cannot be given",
			strings.Join(format.Strings(s.skipped), " and ")))
	case cut:
		x.caveats = append(x.caveats, "the search was ended by the budget")
	case s.last.Capped != "":
		x.caveats = append(x.caveats, "the search ended at "+s.last.Capped)
	}
}

// passes are the searches of one strategy, each with what it looks for.
func (c *chooser) passes(sel strategies.Selection) []explore.Config {
	base := explore.Config{
		Policy: c.cfg.Policy, Clients: clients, Instances: min(clients, c.cfg.total()), Seed: c.cfg.Seed, MaxStates: c.cfg.MaxStates,
	}
	if pg, ok := c.cfg.Stores.Get(string(strategies.NeedPostgres)); ok {
		base.Postgres = pg
	}
	with := func(states int, faults []quota.Fault, looked ...explore.Property) explore.Config {
		p := base
		p.MaxStates, p.Faults, p.Properties = min(p.MaxStates, states), faults, looked
		return p
	}
	all := []explore.Config{with(c.cfg.MaxStates, nil, explore.Leak, explore.FalseReject)}
	if explore.OnPostgres(sel) {
		return all
	}
	if c.cfg.Policy.Window.Kind != quota.Standing {
		all = append(all, with(withFaults, []quota.Fault{quota.FaultClock}, explore.Leak, explore.FalseReject))
	}
	// After a crash units may be counted that no caller holds: every strategy rejects
	// for them, until they end.
	return append(all, with(withFaults, c.cfg.faults(), explore.Leak))
}

// withFaults bounds searches in which something happens in addition to the clients:
// each has many more states than one without.
const withFaults = 10_000

// searchOne searches until something speaks against a strategy.
func (c *chooser) searchOne(ctx context.Context, sel strategies.Selection) (s searched) {
	for _, cfg := range c.passes(sel) {
		if ctx.Err() != nil {
			return s
		}
		res, err := explore.Run(ctx, sel, cfg)
		if _, unfit := errors.AsType[*explore.UnfitError](err); unfit {
			s.unfit = err
			return s
		}
		if res != nil {
			s.all = append(s.all, res)
			if s.against = c.against(sel, res); s.against != nil {
				return s
			}
			s.states, s.last = s.states+res.States, res
		}
		if err != nil && ctx.Err() == nil {
			s.failed = err
			return s
		}
	}
	if explore.OnPostgres(sel) {
		s.skipped = []quota.Fault{quota.FaultCrash} // an outage of Redis does not concern it
	}
	return s
}

// against is the finding that rules a strategy out: a leak of more than is tolerated,
// else a wrong rejection.
func (c *chooser) against(sel strategies.Selection, res *results.Search) *results.Evidence {
	f := res.Found(explore.Leak)
	if f == nil || f.Units <= c.cfg.TolerateLeak {
		f = res.Found(explore.FalseReject)
	}
	if f == nil {
		return nil
	}
	what := fmt.Sprintf("admits %s over a limit of %d", format.Units(f.Units, c.cfg.Policy.Unit), res.Limit)
	if f.Property == explore.FalseReject {
		what = "rejects although there is room"
	}
	where := fmt.Sprintf("with %d clients", res.Clients)
	if res.Instances > 1 {
		where += fmt.Sprintf(" on %d instances", res.Instances)
	}
	if len(f.Faults) > 0 {
		where += " " + happens(f.Faults)
	}
	e := results.Evidence{
		Kind: results.EvidenceSchedule, Text: fmt.Sprintf("%s: %s, in %s", where, what, format.Number(len(f.Steps), "step")),
		Token: f.Token, Steps: len(f.Steps), Command: f.Replay(),
	}
	if f.Token == "" {
		e.Command = exploreText(sel, res)
	}
	return &e
}

// happens says in words what goes wrong in a schedule.
func happens(faults []quota.Fault) string {
	words := map[quota.Fault]string{
		quota.FaultClock: "while time passes", quota.FaultCrash: "if a caller or its instance dies",
		quota.FaultOutage: "where Redis cannot be reached",
	}
	var out []string
	for _, f := range faults {
		out = groups.Union(out, words[f])
	}
	return format.Join(" and ", out...)
}
