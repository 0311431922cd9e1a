package group

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/options"
	"github.com/quotabench/quotabench/internal/report/ranking"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/workloads"
)

// load is how many requests are issued, how, and by how many processes.
type load struct {
	Loop   workloads.Loop
	Rate   float64
	record harness.Load // the rate that was read from a record
	Route  string       // the policy of a second quota

	Quick   bool
	Looking bool // at the figures, to see whether more rounds are needed

	Params []string // what varies, as NAME=VALUES
	Until  string   // the condition whose edge is searched for
}

// routes is how many routes have a second quota.
const routes = 10

// Load says how many requests are issued, and how.
func (s *Settings) Load() []settings.Setting {
	loops := []string{string(harness.Both), string(workloads.Closed), string(workloads.Open)}
	workers := bounds.MaxWorkers
	longest := bounds.MaxDuration
	if s.command == Sim {
		loops = loops[1:]
		workers = bounds.MaxVirtualWorkers
		longest = bounds.MaxVirtualDuration
	}
	return []settings.Setting{
		{Name: "workers", Common: true, Title: settings.Load, Value: settings.Whole(&s.Workers, 1, workers),
			Computed: s.command == Sim, Parameter: true},
		{Name: "loop", Title: settings.Load, Value: s.loopValue(loops), Computed: true, Complete: completeLoops(loops)},
		{Name: "rate", Common: true, Title: settings.Load, Value: s.rateValue()},
		{Name: "requests", Title: settings.Load, Value: settings.Whole(&s.Requests, 0, bounds.MaxRequests), Parameter: true},
		{Name: "duration", Common: true, Title: settings.Load, Value: settings.Span(&s.Duration, longest), Computed: true,
			Parameter: true,
			Doc: by(s, fmt.Sprintf("time per strategy and round (default %v, with --trouble %v; no bound with --requests or "+
				"--trace)",
				bounds.RoundDuration, bounds.TroubleDuration), texts{
				Sim: "virtual time in which requests are issued (default 1m0s; no bound with --requests or --trace)",
			})},
	}
}

// arrivals is an option of loops in which requests come at a rate.
var arrivals = quota.Option{Name: "arrivals", Default: poisson, Values: []string{poisson, "constant"},
	Doc: "how requests come: at random distances, or at equal ones"}

const poisson = "poisson"

// loopOptions are those of a loop, which is one of all.
func loopOptions(name string, all []string) ([]quota.Option, error) {
	switch {
	case !slices.Contains(all, name):
		return nil, quota.Unknown("loop", name, all, "")
	case name == string(workloads.Closed):
		return nil, nil
	}
	return []quota.Option{arrivals}, nil
}

// loopValue is one of the loops, with its options.
func (s *Settings) loopValue(loops []string) *settings.Value {
	text := func() string {
		given := quota.Options{}
		if s.Arrivals != arrivals.Default {
			given[arrivals.Name] = s.Arrivals
		}
		if s.Loop == "" {
			return ""
		}
		return options.Text(string(s.Loop), nil, given)
	}
	declared := func(name string) ([]quota.Option, error) { return loopOptions(name, loops) }
	return settings.Checked("give "+strings.Join(loops, " or "), text, func(text string) (func(), error) {
		one, err := options.One(text, "loop", declared)
		if err != nil {
			return nil, err
		}
		known, _ := declared(one.Name) // which One asked for
		complete, err := quota.Complete(known, one.Given)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.Name, err)
		}
		return func() {
			s.Loop = workloads.Loop(one.Name)
			s.Arrivals = cmp.Or(complete[arrivals.Name], arrivals.Default)
		}, nil
	})
}

// completeLoops offers loops, and behind a colon their options.
func completeLoops(loops []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		name, option, inOptions := strings.Cut(typed, ":")
		if !inOptions {
			return loops, settings.NoFiles
		}
		declared, err := loopOptions(name, loops)
		if err != nil {
			return nil, settings.NoFiles
		}
		return completeOptions(declared, name+":", option), settings.NoFiles | cobra.ShellCompDirectiveNoSpace
	}
}

// Varied says what varies. The completion offers the names of parameters.
func (s *Settings) Varied(parameters cobra.CompletionFunc) []settings.Setting {
	param := settings.Setting{Name: "param", Common: s.measured(), Title: settings.Load, Value: settings.List(&s.Params),
		Computed: true,
		Complete: parameters}
	if !s.measured() {
		return []settings.Setting{param}
	}
	until := settings.Setting{Name: "until", Common: true, Title: settings.Load,
		Value: settings.Named(&s.Until, "a condition such as p99<5ms"), Computed: true, Complete: settings.Words()}
	return []settings.Setting{param, until}
}

// Sweeps reports whether there are several settings to try, or an edge to search for.
func (s *Settings) Sweeps() bool { return len(s.Params) > 0 || s.Until != "" }

// NoSweep reports that there is one setting only, for a reason.
func (s *Settings) NoSweep(why string) error {
	name := "param"
	if len(s.Params) == 0 {
		name = "until"
	}
	return s.Wrong(name, errors.New(why))
}

// Shared is the second quota of each request.
func (s *Settings) Shared() []settings.Setting {
	return []settings.Setting{
		{Name: "route-policy", Title: settings.Load, Value: settings.Text(&s.Route), Computed: true,
			Complete: CompletePolicies,
			Doc:      fmt.Sprintf("charge each request to the quota of one of %d routes as well, of this `policy`", routes)},
	}
}

// rateValue is a rate, or an earlier record whose rate is used again.
func (s *Settings) rateValue() *settings.Value {
	return settings.Or(settings.Decimal(&s.Rate, bounds.MaxRate), func(text string) (func(), error) {
		if filepath.Ext(text) != ".json" {
			return nil, nil
		}
		file, err := codec.Read(text)
		if err != nil {
			return nil, err
		}
		rate, err := commonRate(&file)
		if err != nil {
			return nil, fmt.Errorf("%s %w", text, err)
		}
		return func() {
			s.Rate = rate
			s.record = harness.Load{PerSecond: rate, From: "the rate of " + text}
		}, nil
	})
}

// commonRate is the rate that all open loops of a record had.
func commonRate(file *results.File) (rate float64, err error) {
	for i := range file.Runs {
		run := cmp.Or(file.Runs[i].Paced, &file.Runs[i])
		switch value := run.Params.RatePerS; {
		case value == 0:
		case rate != 0 && rate != value:
			return 0, fmt.Errorf("has open loops at %g and at %g requests per second: give one of them", rate, value)
		default:
			rate = value
		}
	}
	if rate == 0 {
		return 0, errors.New("has no open loop with a rate")
	}
	return rate, nil
}

// Issued decides how requests are issued, once the loop of the workload is known.
func (s *Settings) Issued(meta *workloads.Meta, own workloads.Loop) (harness.Load, error) {
	open := own == workloads.Open
	switch {
	case s.Loop != "":
	case s.command == Sim:
		return harness.OpenAt(s.Rate), nil // sim says itself which rate is needed
	case open:
		s.Loop = workloads.Open
	case s.Quick && s.Rate == 0:
		s.Loop = workloads.Closed // an open loop takes as long as its percentiles need
	default:
		s.Loop = harness.Both
	}
	switch {
	case s.Loop == harness.Both && open:
		return harness.Load{}, s.Wrong("loop",
			fmt.Errorf("requests of the workload %s have times of their own: give open, or "+
				"closed to ignore them", meta.Name))
	case s.Loop == workloads.Open && !open && !meta.NeedsTrace && s.Rate == 0:
		return harness.Load{}, s.Wrong("loop", errors.New("an open loop needs a rate: give --rate"))
	case s.Loop == workloads.Closed && s.Given("rate") && s.Rate > 0:
		return harness.Load{}, s.Wrong("rate", errors.New("a closed loop has no rate: give --loop open"))
	case s.Loop == workloads.Closed:
		return harness.Closed(), nil
	case s.Loop == workloads.Open:
		return harness.OpenAt(s.Rate), nil
	}
	load := harness.Load{Loop: harness.Both, PerSecond: s.Rate}
	if s.record.PerSecond == s.Rate {
		load.From = s.record.From
	}
	return load, nil
}

// What --quick stands for.
const (
	QuickRounds   = 6
	QuickDuration = 50 * time.Millisecond
)

// sweepRounds is how many rounds each value of a sweep has.
const sweepRounds = 10

// The default of --budget.
const (
	leastBudget = 40 * time.Second
	budgetEach  = 6 * time.Second // for each strategy
)

// MostConsidered is how many strategies are measured at most if the command names none.
const MostConsidered = 6

// Repeated says how often is measured.
func (s *Settings) Repeated() []settings.Setting {
	return []settings.Setting{
		{Name: "rounds", Common: true, Title: settings.Load, Value: settings.Whole(&s.Rounds, 1, bounds.MaxRounds),
			Computed: true,
			Doc: fmt.Sprintf("number of rounds; fewer than 6 give ranges instead of confidence intervals "+
				"(default %d if order and verdicts are decided then, else %d; %[1]d with --duration, --param or --until)",
				ranking.FirstLook, ranking.LastLook)},
		{Name: "quick", Common: true, Title: settings.Load, Value: settings.Bool(&s.Quick), Shorthand: true,
			Doc: fmt.Sprintf("a first look in seconds; %d rounds of %v, closed loop alone", QuickRounds, QuickDuration)},
	}
}

// Budgeted says by when there is to be an answer.
func (s *Settings) Budgeted() []settings.Setting {
	return []settings.Setting{{Name: "budget", Common: true, Title: settings.Load, Computed: true,
		Value: settings.SpanFrom(&s.Budget, time.Millisecond, bounds.MaxDuration),
		Doc: fmt.Sprintf("`time` to an answer (default %[2]gs); begin no round that would end later than this after the "+
			"first began, or than twice the time for the first %[1]d (or %[3]gs for each strategy if that is more; "+
			"none with --rounds, --duration, --quick, --param or --until)",
			bounds.LeastRounds, leastBudget.Seconds(), budgetEach.Seconds())}}
}

// look plans the rounds of a run for which nobody gave their number or length.
func (s *Settings) look(config *measure.Config) {
	s.Looking = s.command == Run && s.Against == "" && !s.Quick && s.Rounds == 0 && s.Duration == 0
	if !s.Looking {
		return
	}
	config.Rounds = ranking.LastLook
	measured := len(config.Strategies)
	if s.Considers() {
		measured = min(measured, MostConsidered)
	}
	config.Budget = cmp.Or(config.Budget, max(leastBudget, time.Duration(measured)*budgetEach))
}

// Expand follows what one setting implies for others. It counts if the other one was not
// given in a place that ranks as high.
func (s *Settings) Expand() {
	if meta := replay(); meta != nil && s.Trace != "" && s.Rank("trace") > s.Rank("workload") {
		s.Workload = meta.Name
	}
	if s.measured() && s.Sweeps() && s.Rounds == 0 {
		s.Rounds = sweepRounds
	}
	if !s.Quick {
		return
	}
	if s.Rank("quick") > s.Rank("rounds") {
		s.Rounds = QuickRounds
	}
	if s.Rank("quick") > s.Rank("duration") && s.Requests == 0 && !s.SpeaksOf(traceOption) {
		s.Duration = QuickDuration
	}
}
