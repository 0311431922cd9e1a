package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/harness/sweep"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/results/compare"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// sweepRounds are enough for confidence intervals.
const sweepRounds = 6

// sweepSettings are those of a run, and what varies.
type sweepSettings struct {
	*settings
	params []string
	until  string
}

func newSweepSettings() *sweepSettings {
	s := &sweepSettings{settings: newSettings()}
	s.rounds = sweepRounds
	s.table = slices.DeleteFunc(s.table, func(x setting) bool { return slices.Contains([]string{"budget", "against", "format", "shard"}, x.name) })
	s.lookup("loop").doc = "closed: callers wait for each answer; open: requests come at a rate; both: an open loop at --rate beside each closed one, for latency (default closed, both with --rate, open where the rate varies and for workloads that are)"
	s.lookup("rate").doc = "`requests` per second of the open loop, the same at all points; 0 for none, or the workload's"
	s.table = append([]setting{
		{name: "param", value: &list{p: &s.params}, computed: true, complete: completeParameters,
			doc: "`NAME=VALUES` to sweep, e.g. workers=1,8,64, pool=1..64x2 (doubling), over-quota=0..1+0.25 (steps) or three-tier.lag=0s,1s; may be given twice, for all combinations"},
		{name: "until", value: &text{p: &s.until, what: "a condition such as p99<5ms"}, computed: true, complete: completeWords(),
			doc: "look for the edge of a `condition` such as p99<5ms: alone, or with --param rate=LOW..HIGH, the highest rate of an open loop at which it holds; with other parameters the value from which, or up to which, it holds"},
	}, s.table...)
	s.fresh = func() *settings { return newSweepSettings().settings }
	return s
}

func sweepCommand() *cobra.Command {
	s := newSweepSettings()
	var config fileFlags
	cmd := &cobra.Command{
		Use:   "sweep [strategy...]",
		Short: "Measure over values of a parameter: the knee, or the highest rate that holds",
		Long: "Runs strategies as \"quotabench run\" does, at each value of one parameter, or at all\n" +
			"combinations of two. Every round has all values once, in random order, so that a drift\n" +
			"of the machine does not look like a trend. A parameter is a numeric flag of run, an\n" +
			"option of the workload or, as STRATEGY.OPTION, one of a strategy. Prints where more\n" +
			"of the parameter stops to bring decisions per second (the knee), or with --until the\n" +
			"edge of a condition, and a table for each strategy. A sweep of the rate is an open\n" +
			"loop; others are closed ones, and at --rate both.",
		Example: "  quotabench sweep --param workers=1,8,64,512\n" +
			"  quotabench sweep pg-check --param pool=1..64x2 --workers 64\n" +
			"  quotabench sweep three-tier --param three-tier.lag=0s,1s,5s --param workers=8,64\n" +
			"  quotabench sweep lua-reserve --until 'p99<5ms'\n" +
			"  quotabench sweep lua-reserve --until 'p99<5ms' --param rate=1000..20000\n" +
			"  quotabench sweep three-tier --workload steady --param over-quota=0..1+0.25 \\\n" +
			"      --until 'service.p99<10us'",
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := before(cmd.Context(), func() (*job, error) {
				if err := config.read(s.settings, args); err != nil {
					return nil, err
				}
				return s.job()
			})
			if err != nil {
				return err
			}
			if config.print {
				return s.print(cmd.OutOrStdout(), "sweep", j.points[0].Policy.Unit)
			}
			return s.carryOut(cmd, j)
		},
		ValidArgsFunction: completeStrategies,
	}
	cmd.Flags().SortFlags = false
	s.register(cmd)
	config.register(cmd, "measure")
	return cmd
}

// completeParameters offers what every measurement has, and the options of workloads and
// strategies.
func completeParameters(_ *cobra.Command, _ []string, typed string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	if strings.Contains(typed, "=") {
		return nil, noFiles
	}
	for _, name := range sweep.Parameters() {
		out = append(out, name+"=")
	}
	for _, w := range workloads.All() {
		for _, o := range w.Options {
			if c := o.Name + "="; !slices.Contains(out, c) {
				out = append(out, c)
			}
		}
	}
	for _, m := range strategies.All() {
		for _, o := range m.Options {
			out = append(out, m.Name+"."+o.Name+"=")
		}
	}
	return out, noFiles | cobra.ShellCompDirectiveNoSpace
}

// job turns the settings into what is measured.
func (s *sweepSettings) job() (*job, error) {
	if s.until != "" {
		if _, err := compare.ParseRunGate(s.until); err != nil {
			return nil, s.wrong("until", err)
		}
	}
	low, high, search, err := s.bounds()
	if err != nil {
		return nil, s.wrong("param", err)
	}
	var params []results.Swept
	if !search {
		if params, err = sweep.ParseAll(s.params); err != nil {
			return nil, s.wrong("param", err)
		}
	}
	if err := s.settle(params, search); err != nil {
		return nil, err
	}
	base, err := s.plan()
	if err != nil {
		return nil, err
	}
	if rate := base.RateInForce(); !s.given("duration") && !base.Closed && rate > 0 && (base.Rate > 0 || base.Workload.Loop == workloads.Open) {
		base.Duration = max(base.Duration, sweep.LongEnough(rate))
	}
	base.LatencyRate = max(base.LatencyRate, 0) // a rate of each point's own could not be compared
	if search {
		return s.search(base, low, high)
	}
	points, err := sweep.Points(base, params)
	if err != nil {
		return nil, s.wrong("param", err)
	}
	return &job{
		points: points, sweep: &results.Sweep{Parameters: params, Until: s.until},
		measure: func(ctx context.Context, points []measure.Config) (*measure.Report, error) {
			r, err := sweep.MeasurePoints(ctx, points, params)
			if err != nil {
				return nil, err
			}
			return &r.Report, nil
		},
	}, nil
}

// bounds are those between which a rate is searched, both 0 where none are given; search
// says whether there is a search at all.
func (s *sweepSettings) bounds() (low, high float64, search bool, err error) {
	if s.until == "" {
		return 0, 0, false, nil
	}
	if len(s.params) == 0 {
		return 0, 0, true, nil
	}
	name, values, _ := strings.Cut(s.params[0], "=")
	if len(s.params) > 1 || strings.TrimSpace(name) != sweep.Rate || !strings.Contains(values, "..") || strings.ContainsAny(values, ",x+") {
		return 0, 0, false, nil
	}
	low, high, err = sweep.ParseInterval(values)
	return low, high, true, err
}

// settle decides what follows from what varies: the loop, and what the parameters are in
// the plan that all points begin with.
func (s *sweepSettings) settle(params []results.Swept, search bool) error {
	for _, p := range params {
		if x := s.lookup(p.Name); x != nil && s.given(p.Name) {
			return s.wrong("param", fmt.Errorf("%s is given by --%s, too: give one of them", p.Name, p.Name))
		}
	}
	swept := func(name string) *results.Swept {
		if i := slices.IndexFunc(params, func(p results.Swept) bool { return p.Name == name }); i >= 0 {
			return &params[i]
		}
		return nil
	}
	rate := swept(sweep.Rate)
	switch {
	case search && s.given("rate"):
		return s.wrong("rate", errors.New("the rate is what --until searches for: bound it by --param rate=LOW..HIGH"))
	case (search || rate != nil) && s.loop != "" && s.loop != loopOpen:
		return s.wrong("loop", errors.New("rates belong to an open loop: leave --loop out"))
	case search || rate != nil:
		s.loop, s.rate = loopOpen, sweep.DefaultLow
	case s.loop == loopBoth && s.rate == 0:
		return s.wrong("loop", errors.New("each point would have an open loop at a rate of its own: give --rate"))
	case s.loop == "" && s.rate == 0 && s.speed == 0:
		s.expand()
		if w, err := workloads.Lookup(s.workload); err == nil && w.Loop != workloads.Open {
			s.loop = loopClosed
		}
	}
	// One worker cannot serve two instances. Where only the workers were asked for, there
	// are as many instances as the fewest of them can serve.
	if p := swept("workers"); p != nil && !s.given("instances") && swept("instances") == nil {
		for _, v := range p.Values {
			if n, ok := results.SweepNumber(v); ok && n >= 1 {
				s.instances = min(s.instances, int(n))
			}
		}
	}
	return nil
}

// search is the job of a search for a rate.
func (s *sweepSettings) search(base measure.Config, low, high float64) (*job, error) {
	gate, err := compare.ParseRunGate(s.until)
	if err != nil {
		return nil, s.wrong("until", err)
	}
	hunt := &sweep.Search{Config: base, Low: low, High: high, Holds: func(x *results.Summary) bool { return gate.At(x).Holds }}
	bounds, err := hunt.Points()
	if err != nil {
		return nil, s.wrong("until", err)
	}
	record := hunt.Sweep()
	record.Until = s.until
	return &job{
		points: bounds, sweep: &record,
		measure: func(ctx context.Context, points []measure.Config) (*measure.Report, error) {
			c := &hunt.Config
			c.Stores, c.Observer, c.Live = points[0].Stores, points[0].Observer, points[0].Live
			r, err := hunt.Measure(ctx)
			if err != nil {
				return nil, err
			}
			return &r.Report, nil
		},
	}, nil
}
