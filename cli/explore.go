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

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/app/searches"
	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/strategies"
)

// exploreSettings are what a search is told.
type exploreSettings struct {
	searches.Options
	memory             int64
	skew               []string
	faults, properties []string
	scripts            string
}

// maxTimeout is the longest time that a search can be given.
const maxTimeout = 30 * 24 * time.Hour

// searchTime is what each search is given if no time is.
const searchTime = time.Minute

// mostMemory is the most that a search can be given for its states, in MiB.
const mostMemory = 1 << 20

func newExploreSettings() *exploreSettings {
	s := &exploreSettings{Options: searches.Options{Settings: group.New(group.Explore), On: searches.Embedded}}
	s.Asked = explore.Config{
		Clients: 2, Scope: explore.Scope{Times: 1, JobRounds: 1, Asks: bounds.DefaultAsks},
		Bounds: explore.Bounds{Preemptions: bounds.DefaultPreemptions, Samples: bounds.DefaultSamples},
	}
	return s
}

// searched are the settings that a measurement does not have.
func (s *exploreSettings) searched() []settings.Setting {
	config := &s.Asked
	faults := format.Strings(explore.Faults())
	properties := format.Strings(explore.Properties())
	return []settings.Setting{
		{Name: "limit", Common: true, Title: settings.What, Value: settings.Whole(&config.Limit, 1, bounds.MaxUnits),
			Computed: true},
		{Name: "clients", Common: true, Title: settings.Search,
			Value: settings.Whole(&config.Clients, 1, bounds.MaxClients)},
		{Name: "script", Common: true, Title: settings.Search, Value: settings.Text(&s.scripts),
			Complete: cobra.NoFileCompletions},
		{Name: "used", Title: settings.Search, Value: settings.Whole(&config.Used, 0, bounds.MaxUnits)},
		{Name: "skew", Title: settings.Trouble, Value: settings.List(&s.skew), Complete: cobra.NoFileCompletions},
		{Name: "faults", Common: true, Title: settings.Search, Value: settings.List(&s.faults),
			Complete: settings.Words(append(faults, "all")...),
			Doc: "`faults` that may happen, e.g. crash or all; " + strings.Join(faults, ", ") + "; with --service also " +
				"timeout, script-flush, restart; may be repeated"},
		{Name: "times", Title: settings.Search, Value: settings.Whole(&config.Times, 1, bounds.MaxTimes)},
		{Name: "jobs", Title: settings.Search, Value: settings.Whole(&config.JobRounds, 0, bounds.MaxTimes)},
		{Name: "asks", Title: settings.Search, Value: settings.Whole(&config.Asks, 0, bounds.MaxAsks)},
		{Name: "property", Common: true, Title: settings.Search, Value: settings.List(&s.properties),
			Complete: settings.Words(append(properties, "all")...),
			Doc:      "`properties` to look for (default: all); " + strings.Join(properties, ", ") + "; may be repeated"},
		{Name: "max-states", Title: settings.Search, Value: settings.Whole(&config.MaxStates, 0, bounds.MaxStates),
			Computed: true},
		{Name: "max-memory", Title: settings.Search, Value: settings.Whole(&s.memory, 0, mostMemory), Computed: true},
		{Name: "preemptions", Title: settings.Search, Value: settings.Whole(&config.Preemptions, 0, bounds.MaxTimes)},
		{Name: "timeout", Common: true, Title: settings.Search, Value: settings.Span(&s.Timeout, maxTimeout), Computed: true},
		{Name: "first", Title: settings.Search, Value: settings.Bool(&config.First)},
		{Name: "strict", Title: settings.Gates, Value: settings.Bool(&s.Strict)},
		{Name: "exit-zero", Common: true, Title: settings.Gates, Value: settings.Bool(&s.ExitZero)},
		{Name: "parallel", Title: settings.Search, Value: settings.Whole(&s.Parallel, 0, bounds.MaxParallel)},
		{Name: "full", Common: true, Title: settings.Search, Value: settings.Bool(&s.Full)},
		{Name: "max-schedules", Title: settings.Search, Value: settings.Whole(&config.MaxSchedules, 0, bounds.MaxSchedules),
			Computed: true},
		{Name: "redis", Common: true, Title: settings.Stores, Value: settings.Text(&s.On),
			Complete: settings.Words(searches.Embedded, "process", "container")},
		{Name: "service", Common: true, Title: settings.Stores, Value: settings.Text(&config.Service),
			Complete: cobra.NoFileCompletions},
		{Name: "request", Common: true, Title: settings.Stores, Value: settings.Text(&config.Request), Computed: true,
			Complete: cobra.NoFileCompletions},
		{Name: "counter", Title: settings.Stores, Value: settings.Text(&config.Counter), Complete: cobra.NoFileCompletions},
		{Name: "service-clock", Title: settings.Stores, Value: settings.Text(&config.ServiceClock),
			Complete: cobra.NoFileCompletions},
		{Name: "env", Title: settings.Stores, Value: settings.List(&config.Environment), Complete: cobra.NoFileCompletions},
		{Name: "replay", Common: true, Title: settings.Search, Value: settings.Text(&s.Replay),
			Complete: cobra.NoFileCompletions},
	}
}

func exploreCommand() *cobra.Command {
	exploreSettings := newExploreSettings()
	cmd := described("explore", &cobra.Command{RunE: exploreSettings.run, ValidArgsFunction: group.CompleteStrategies})
	exploreSettings.register(cmd)
	return cmd
}

func (s *exploreSettings) register(cmd *cobra.Command) {
	s.Register(cmd, s.Subject(), s.Seeded(), s.Deadline(), s.Stores(string(strategies.NeedPostgres)), s.Conditions(),
		s.searched(), s.Output(), s.ConfigFile())
}

func (s *exploreSettings) run(cmd *cobra.Command, args []string) error {
	defer session.OutlivePipes()()
	s.Asked.Isolate = isolates
	var chosen []strategies.Selection
	cfg, err := workedOut(cmd, s.Settings, args, func() (cfg explore.Config, err error) {
		err = s.checkService()
		if err == nil && !s.Given("replay") {
			chosen, cfg, err = s.configure()
		}
		return cfg, err
	})
	switch {
	case err != nil:
		return err
	case s.Given("replay"):
		return s.Repeat(cmd)
	}
	if s.Chose != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), s.Chose)
	}
	return s.Search(cmd, chosen, cfg)
}

// configure turns the settings into what to search, and how.
func (s *exploreSettings) configure() (chosen []strategies.Selection, cfg explore.Config, err error) {
	cfg = s.Asked
	cfg.Instances = s.Instances
	cfg.Seed = s.Seed
	cfg.DecisionTimeout = s.DecisionTimeout
	cfg.MaxMemory = s.memory << 20
	s.setDefaults(&cfg)
	if s.Seed == 0 { // which a search takes for its default
		return nil, cfg, s.Wrong("seed", errors.New("searches have no seed 0: give 1 or more"))
	}
	if len(s.Strategies) == 0 {
		return nil, cfg, usagef("no strategy to explore: name one, e.g. quotabench explore check-then-set (see quotabench " +
			"list strategies)")
	}
	chosen, err = s.Selections()
	if err != nil {
		return nil, cfg, err
	}
	cfg.Workers = 1
	if len(chosen) == 1 {
		cfg.Workers = cmp.Or(s.Parallel, runtime.GOMAXPROCS(0))
	}
	if err := s.checkFull(); err != nil {
		return nil, cfg, err
	}
	if err := s.parse(&cfg); err != nil {
		return nil, cfg, err
	}
	return chosen, cfg, nil
}

// checkService refuses settings of a service if there is none.
func (s *exploreSettings) checkService() error {
	if s.Asked.Service != "" {
		return nil
	}
	for _, name := range []string{"request", "counter", "service-clock", "env"} {
		if s.Given(name) {
			return s.Wrong(name, errors.New("it is for a --service: give its command, or leave this out"))
		}
	}
	return nil
}

// setDefaults turns what the command line means by 0, or by no value, into what a search means.
func (s *exploreSettings) setDefaults(cfg *explore.Config) {
	for _, number := range []*int{&cfg.Preemptions, &cfg.Asks, &cfg.JobRounds} {
		if *number == 0 {
			*number = -1 // which a search takes for none, and 0 for its default
		}
	}
	if !s.Given("clients") {
		cfg.Clients = 0 // as many as suit the search
	}
	if !s.Full && !s.Given("timeout") {
		cfg.Timeout = searchTime
	}
}

// parse reads the settings that are texts.
func (s *exploreSettings) parse(cfg *explore.Config) (err error) {
	if s.Given("policy") {
		cfg.Policy, cfg.Second, err = s.BothPolicies()
		if err != nil {
			return err
		}
	}
	cfg.Scripts, err = explore.ParseScripts(s.scripts)
	if err != nil {
		return s.Wrong("script", err)
	}
	cfg.Faults, err = explore.ParseFaults(strings.Join(s.faults, ","))
	if err != nil {
		return s.Wrong("faults", err)
	}
	s.AllFaults = slices.Equal(s.faults, []string{"all"})
	cfg.Properties, err = explore.ParseProperties(strings.Join(s.properties, ","))
	if err != nil {
		return s.Wrong("property", err)
	}
	if err := s.SearchGates(cfg.Properties); err != nil {
		return err
	}
	cfg.Skew, err = readSkew(s.Settings, s.skew)
	return err
}

// checkFull refuses what --full has no use for, and what only it has.
func (s *exploreSettings) checkFull() error {
	if !s.Full {
		if s.Given("max-schedules") {
			return s.Wrong("max-schedules", errors.New("it bounds --full, which is not given: use --max-states for a search"))
		}
		return nil
	}
	for _, name := range []string{"property", "asks", "max-states", "max-memory", "preemptions", "require", "first"} {
		if s.Given(name) {
			return s.Wrong(name, errors.New("--full counts every schedule that leaks: leave one of the two out"))
		}
	}
	return nil
}
