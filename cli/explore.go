package cli

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/explore"
	"github.com/quotabench/quotabench/harness/odds"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/strategies"
)

// exploreSettings are those of run that apply, and what only a search has.
type exploreSettings struct {
	*settings
	clients, times, jobs, states int
	parallel, preemptions, asks  int
	memory                       int64
	schedules, used              int64
	skew, faults, properties     []string
	scripts, on, replay          string
	full, first, exitZero        bool
	oddsRate                     float64
	timeout                      time.Duration
}

// explored are the settings of run that mean something in a search.
var explored = []string{"strategy", "policy", "limit", "instances", "decision-timeout", "seed", "postgres", "postgres-image", "out", "fail-on"}

// maxTimeout is the longest time that a search can be given.
const maxTimeout = 30 * 24 * time.Hour

// searchTime is what each search is given where no time is.
const searchTime = time.Minute

// mostMemory is the most that a search can be given for its states, in MiB.
const mostMemory = 1 << 20

// embeddedStore is the store that searches run on, by the name that --on has for it.
const embeddedStore = "embedded"

func newExploreSettings() *exploreSettings {
	s := &exploreSettings{settings: newSettings(), clients: 2, times: 1, jobs: 1, preemptions: explore.DefaultPreemptions, asks: explore.DefaultAsks, on: embeddedStore, oddsRate: odds.DefaultRate}
	s.strategy, s.policy, s.instances = nil, "", 0
	s.table = slices.DeleteFunc(s.table, func(x setting) bool { return !slices.Contains(explored, x.name) })
	for name, x := range map[string]setting{
		"strategy": {value: &list{p: &s.strategy}, doc: "strategies, `a,b:option=value`, core, all or a pattern such as pg-*; may be repeated, or given as arguments"},
		"policy":   {value: &text{p: &s.policy}, doc: "policy to enforce (default: one of the strategy's own record)"},
		"limit":    {value: count(&s.limit, 1, explore.MaxUnits), doc: "limit in `units` (default: room for all requests but one)"},
		"instances": {value: whole(&s.instances, 0, explore.MaxClients),
			doc: "application instances that share the stores (default: one per client)"},
		"decision-timeout": {value: span(&s.decision, harness.MaxDecisionTimeout),
			doc: "real time that a strategy may block outside of the search, on a mutex or a channel, before it is given up (default " + harness.DefaultDecisionTimeout.String() + ")"},
		"seed": {value: seed(&s.seed), doc: "seed of the strategies' own random numbers"},
		"out":  {value: &text{p: &s.out}, doc: "`directory` for exploration.json, report.html, report.txt and a sequence chart (SVG) of each finding"},
	} {
		at := s.lookup(name)
		at.value, at.doc, at.computed = x.value, x.doc, true
	}
	s.lookup("fail-on").doc = s.failOnSetting("leak or steps<9").doc
	s.table = append(s.table, s.search()...)
	return s
}

// search are the settings that a measurement does not have.
func (s *exploreSettings) search() []setting {
	var faults, properties []string
	for _, f := range explore.Faults() {
		faults = append(faults, string(f))
	}
	for _, p := range explore.Properties() {
		properties = append(properties, string(p))
	}
	return []setting{
		{name: "clients", value: whole(&s.clients, 1, explore.MaxClients),
			doc: "clients that share one subject"},
		{name: "script", value: &text{p: &s.scripts}, complete: cobra.NoFileCompletions,
			doc: "what clients do, e.g. `take=5,refund;take`: one script per client, the last for all others; limit=1 is an operator who changes the limit"},
		{name: "used", value: count(&s.used, 0, explore.MaxUnits),
			doc: "`units` in use at the start"},
		{name: "skew", value: &list{p: &s.skew}, complete: cobra.NoFileCompletions,
			doc: "`times` by which instances' clocks are ahead, in their order, e.g. 0s,2s,-2s"},
		{name: "faults", value: &list{p: &s.faults}, complete: completeWords(append(faults, "all")...),
			doc: "faults that may happen: " + strings.Join(faults, ", ") + ", or all; may be repeated"},
		{name: "times", value: whole(&s.times, 1, explore.MaxTimes),
			doc: "how often each fault may happen in one schedule; the clock ticks once more"},
		{name: "jobs", value: whole(&s.jobs, 0, explore.MaxTimes),
			doc: "how often each periodic job may start, at any moment"},
		{name: "asks", value: whole(&s.asks, 0, explore.MostAsks),
			doc: "how often one more client asks for one unit once all scripts have ended, until it is rejected, where fewer are left than that and no time has passed within a request; 0 for no such client"},
		{name: "property", value: &list{p: &s.properties}, complete: completeWords(append(properties, "all")...),
			doc: "properties to look for: " + strings.Join(properties, ", ") + ", or all; may be repeated"},
		{name: "max-states", value: whole(&s.states, 0, explore.MostStates), computed: true,
			doc: "states after which each of the two parts of a search ends (default 200000)"},
		{name: "max-memory", value: count(&s.memory, 0, mostMemory), computed: true,
			doc: "memory in `MiB` that a search may take for states, 0 for any"},
		{name: "preemptions", value: whole(&s.preemptions, 0, explore.MaxTimes),
			doc: "where a bound ends a search, a second part tries all schedules in which at most so many calls are interrupted between two commands; 0 for no second part"},
		{name: "timeout", value: span(&s.timeout, maxTimeout), computed: true,
			doc: "`time` for the whole command, 0 for any, shared among its strategies; a search whose time is up keeps what it found and says that it was not complete (default 1m for each strategy, and none with --full)"},
		{name: "odds-rate", value: speedOf(&s.oddsRate, odds.MinRate, odds.MaxRate),
			doc: "simulate what leaks, or rejects wrongly, at so many `requests` per second of each subject, and say how often it is met; 0 for no simulation. Where several strategies are named, none is simulated unless this is given"},
		{name: "first", value: &boolean{&s.first},
			doc: "end at the first schedule that breaks a property of any strategy"},
		{name: "exit-zero", value: &boolean{&s.exitZero},
			doc: "exit with 0 whatever is found, e.g. for a catalogue; conditions of --fail-on count all the same"},
		{name: "parallel", value: whole(&s.parallel, 0, sim.MaxParallel),
			doc: "strategies searched at the same time, each in memory of its own, and workers of the search where there is one strategy; 0 for one per processor"},
		{name: "full", value: &boolean{&s.full},
			doc: "run and count every schedule instead of searching for the shortest that breaks a property"},
		{name: "max-schedules", value: count(&s.schedules, 0, explore.MostSchedules), computed: true,
			doc: "schedules after which --full ends (default 5000000)"},
		{name: "on", value: &text{p: &s.on}, complete: completeWords(embeddedStore, "process", "container"),
			doc: "repeat what is found on a Redis: process, container or a `URL`; embedded repeats it here"},
		{name: "replay", value: &text{p: &s.replay}, complete: cobra.NoFileCompletions,
			doc: "repeat the schedule of this `token`, on the store of --on"},
		{name: "json", value: &boolean{&s.asJSON},
			doc: "write JSON instead of tables"},
	}
}

func exploreCommand() *cobra.Command {
	s := newExploreSettings()
	cmd := &cobra.Command{
		Use:   "explore [strategy...]",
		Short: "Search every order of store commands for the shortest that breaks a property",
		Long: "Runs a strategy's own code with a few clients in every order that their store commands,\n" +
			"its jobs and the chosen faults can happen in, and prints the shortest schedule that leaks,\n" +
			"rejects wrongly, drifts, strands units or leaves a key behind; or says that there is none\n" +
			"within the bounds. Exits with 1 if a property is broken that was looked for, all of them\n" +
			"unless --property names some, or if --fail-on holds; --full counts and exits with 0.",
		Example: "  quotabench explore check-then-set\n" +
			"  quotabench explore check-then-set --clients 5 --limit 4 --full\n" +
			"  quotabench explore incr-expire --faults crash --out found\n" +
			"  quotabench explore decr-expire --limit 2 --script \"take,take;limit=1\" --property leak\n" +
			"  quotabench explore lua-reserve --script \"take,refund;take\" --property leak --on process\n" +
			"  quotabench explore --replay TOKEN --on process",
		RunE: func(cmd *cobra.Command, args []string) error {
			defer outlivePipes()()
			if err := s.byPosition(args); err != nil {
				return err
			}
			if s.given("replay") {
				return s.replayToken(cmd)
			}
			type search struct {
				chosen []strategies.Selection
				cfg    explore.Config
			}
			x, err := before(cmd.Context(), func() (x search, err error) {
				x.chosen, x.cfg, err = s.configure()
				return x, err
			})
			if err != nil {
				return err
			}
			return s.explore(cmd, x.chosen, x.cfg)
		},
		ValidArgsFunction: completeStrategies,
	}
	cmd.Flags().SortFlags = false
	s.register(cmd)
	return cmd
}

// configure turns the settings into what to search, and how.
func (s *exploreSettings) configure() ([]strategies.Selection, explore.Config, error) {
	cfg := explore.Config{
		Limit: s.limit, Used: s.used, Clients: s.clients, Instances: s.instances, Seed: s.seed,
		Times: s.times, JobRounds: s.jobs, DecisionTimeout: s.decision, MaxStates: s.states, MaxSchedules: s.schedules, First: s.first,
		MaxMemory: s.memory << 20, Preemptions: s.preemptions, Asks: s.asks, Samples: explore.DefaultSamples,
	}
	if s.preemptions == 0 {
		cfg.Preemptions = -1
	}
	if s.asks == 0 {
		cfg.Asks = -1
	}
	if !s.full && !s.given("timeout") {
		cfg.Timeout = searchTime
	}
	if s.jobs == 0 {
		cfg.JobRounds = -1
	}
	if len(s.strategy) == 0 {
		return nil, cfg, usagef("no strategy to explore: name one, e.g. quotabench explore check-then-set (see quotabench list strategies)")
	}
	chosen, err := strategies.Parse(strings.Join(s.strategy, ","))
	if err != nil {
		return nil, cfg, s.wrong("strategy", err)
	}
	cfg.Workers = 1
	if len(chosen) == 1 {
		cfg.Workers = cmp.Or(s.parallel, runtime.GOMAXPROCS(0))
	}
	if s.full {
		for _, name := range []string{"property", "asks", "odds-rate", "max-states", "max-memory", "preemptions", "fail-on", "first"} {
			if s.given(name) {
				return nil, cfg, s.wrong(name, errors.New("--full counts every schedule that leaks: leave one of the two out"))
			}
		}
	} else if s.given("max-schedules") {
		return nil, cfg, s.wrong("max-schedules", errors.New("it bounds --full, which is not given: use --max-states for a search"))
	}
	if s.given("policy") {
		if cfg.Policy, err = lookupPolicy(s.policy); err != nil {
			return nil, cfg, s.wrong("policy", err)
		}
	}
	if cfg.Scripts, err = explore.ParseScripts(s.scripts); err != nil {
		return nil, cfg, s.wrong("script", err)
	}
	if cfg.Faults, err = explore.ParseFaults(strings.Join(s.faults, ",")); err != nil {
		return nil, cfg, s.wrong("faults", err)
	}
	if cfg.Properties, err = explore.ParseProperties(strings.Join(s.properties, ",")); err != nil {
		return nil, cfg, s.wrong("property", err)
	}
	if s.gates, err = s.searchGates(cfg.Properties); err != nil {
		return nil, cfg, err
	}
	for _, x := range split(s.skew) {
		d, err := time.ParseDuration(x)
		if err != nil {
			return nil, cfg, s.wrong("skew", fmt.Errorf("give times such as 0s,2s,-2s, not %q", x))
		}
		cfg.Skew = append(cfg.Skew, d)
	}
	return chosen, cfg, nil
}
