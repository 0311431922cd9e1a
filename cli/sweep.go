package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/app/sweep"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/report/compare"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// sweeping is a run of several settings, or one that searches for a rate.
type sweeping struct{ *group.Settings }

// completeParameters offers what every measurement has, and the options of workloads and
// strategies.
func completeParameters(_ *cobra.Command, _ []string,
	typed string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	if strings.Contains(typed, "=") {
		return nil, settings.NoFiles
	}
	for _, name := range sweep.Parameters() {
		out = append(out, name+"=")
	}
	for _, meta := range workloads.All() {
		for _, option := range meta.Options {
			if text := option.Name + "="; !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	for _, meta := range strategies.All() {
		for _, option := range meta.Options {
			out = append(out, meta.Name+"."+option.Name+"=")
		}
	}
	return out, settings.NoFiles | cobra.ShellCompDirectiveNoSpace
}

// job turns the settings into what is measured.
func (s *sweeping) job() (*job, error) {
	if s.Against != "" {
		return nil, s.NoSweep("--against compares two programs at one setting: leave one of the two out")
	}
	var until compare.Gate
	if s.Until != "" {
		var err error
		until, err = compare.ParseRunGate(s.Until)
		if err != nil {
			return nil, s.Wrong("until", err)
		}
	}
	low, high, search, err := s.bounds()
	if err != nil {
		return nil, s.Wrong("param", err)
	}
	var params []results.Swept
	if !search {
		params, err = sweep.ParseAll(s.Params)
		if err != nil {
			return nil, s.Wrong("param", err)
		}
	}
	if err := s.settle(params, search); err != nil {
		return nil, err
	}
	base, err := s.Measurement()
	if err != nil {
		return nil, err
	}
	if rate := base.RateInForce(); !s.Given("duration") && rate > 0 &&
		base.Open(workloads.Info{Loop: base.Workload.Loop}) {
		base.Duration = max(base.Duration, sweep.LongEnough(rate))
	}
	if base.Load == (harness.Load{Loop: harness.Both}) { // rates of each point's own could not be compared
		base.Load = harness.Closed()
	}
	if search {
		holds := func(file *results.File, summary *results.Summary) bool { return until.At(file, summary).Holds }
		return s.search(&sweep.Search{Config: base, Low: low, High: high, Holds: holds})
	}
	points, err := sweep.Points(base, params)
	if err != nil {
		return nil, s.Wrong("param", err)
	}
	return &job{
		points: points, sweep: &results.Sweep{Parameters: params, Until: s.Until},
		measure: sweep.Measure,
	}, nil
}

// bounds are those between which a rate is searched, both 0 if none are given; search
// says whether there is a search at all.
func (s *sweeping) bounds() (low, high float64, search bool, err error) {
	if s.Until == "" {
		return 0, 0, false, nil
	}
	if len(s.Params) == 0 {
		return 0, 0, true, nil
	}
	name, values, _ := strings.Cut(s.Params[0], "=")
	if len(s.Params) > 1 || strings.TrimSpace(name) != sweep.Rate || !strings.Contains(values, "..") ||
		strings.ContainsAny(values, ",x+") {
		return 0, 0, false, nil
	}
	low, high, err = sweep.ParseInterval(values)
	return low, high, true, err
}

// settle decides what follows from what varies: the loop, and what the parameters are in
// the plan that all points begin with.
func (s *sweeping) settle(params []results.Swept, search bool) error {
	if err := once(s.Settings, params); err != nil {
		return err
	}
	swept := func(name string) *results.Swept {
		if i := slices.IndexFunc(params, func(swept results.Swept) bool { return swept.Name == name }); i >= 0 {
			return &params[i]
		}
		return nil
	}
	rate := swept(sweep.Rate)
	switch {
	case search && s.Budget > 0:
		return s.Wrong("budget", errors.New("a search for a rate ends when it has found it: leave one of --budget and "+
			"--until out"))
	case search && s.Rank("rate") == settings.ByFlag:
		return s.Wrong("rate", errors.New("the rate is what --until searches for: bound it by --param rate=LOW..HIGH"))
	case (search || rate != nil) && s.Loop != "" && s.Loop != workloads.Open:
		return s.Wrong("loop", errors.New("rates belong to an open loop: leave --loop out"))
	case search || rate != nil:
		s.Loop = workloads.Open
		s.Rate = sweep.DefaultLow
	case s.Loop == harness.Both && s.Rate == 0:
		return s.Wrong("loop", errors.New("each point would have an open loop at a rate of its own: give --rate, or "+
			"--loop closed"))
	case s.Loop == "" && s.Rate == 0 && !s.SpeaksOf("speed"):
		s.Expand()
		meta, _, err := s.Chosen()
		if err != nil {
			return err
		}
		if meta.Loop != workloads.Open {
			s.Loop = workloads.Closed
		}
	}
	// One worker cannot serve two instances. If only the workers were given, there are as
	// many instances as the fewest of them can serve.
	if p := swept("workers"); p != nil && !s.Given("instances") && swept("instances") == nil {
		for _, text := range p.Values {
			if n, ok := stat.ParseValue(text); ok && n >= 1 {
				s.Instances = min(s.Instances, int(n))
			}
		}
	}
	return nil
}

// once reports a parameter whose flag is given, too. A value in a file, as --print-config writes one for each setting,
// gives way to the values of the parameter.
func once(s *group.Settings, params []results.Swept) error {
	for _, swept := range params {
		if setting := s.Lookup(swept.Name); setting != nil && s.Rank(swept.Name) == settings.ByFlag {
			return s.Wrong("param", fmt.Errorf("%s is given by --%s, too: give one of them", swept.Name, swept.Name))
		}
		if s.Rank("client") == settings.ByFlag && s.ClientHas(swept.Name) {
			return s.Wrong("param", fmt.Errorf("%s is given by --client, too: give one of them", swept.Name))
		}
		if s.Rank("workload") == settings.ByFlag && s.SpeaksOf(swept.Name) {
			return s.Wrong("param", fmt.Errorf("%s is given by --workload, too: give one of them", swept.Name))
		}
	}
	return nil
}

// search is the job of a search for a rate.
func (s *sweeping) search(hunt *sweep.Search) (*job, error) {
	bounds, err := hunt.Points()
	if err != nil {
		return nil, s.Wrong("until", err)
	}
	record := hunt.Sweep()
	record.Until = s.Until
	return &job{
		points: bounds, sweep: &record,
		measure: func(ctx context.Context, points []measure.Config) (*measure.Report, error) {
			config := &hunt.Config
			config.Stores = points[0].Stores
			config.Observer = points[0].Observer
			config.Live = points[0].Live
			return hunt.Measure(ctx)
		},
	}, nil
}
