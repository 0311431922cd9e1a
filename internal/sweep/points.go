package sweep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/harness/sim"
	"github.com/quotabench/quotabench/internal/network"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// MaxPoints is the most combinations of values.
const MaxPoints = 400

// Rate is the name of the parameter that a [Search] looks for.
const Rate = "rate"

// Measure measures points, as [Points] makes them, in turns. What [measure.Measure] says of ctx and of errors
// holds here too.
func Measure(ctx context.Context, points []measure.Config) (*measure.Report, error) {
	reports, err := measure.Points(ctx, points)
	if err != nil {
		return nil, err
	}
	out := new(measure.Report)
	for _, r := range reports {
		add(out, r)
	}
	return out, nil
}

// Simulate simulates points, as [Simulations] makes them, one after the other. The report has no series and no traces.
// What [sim.Run] says of ctx and of errors holds here too.
func Simulate(ctx context.Context, points []sim.Config) (*sim.Report, error) {
	var out measure.Report
	for _, c := range points {
		if len(c.Strategies) == 0 { // those of this point are another part's, and its notes are about all points
			_, info, err := harness.NewStreamUnless(ctx, &c.Plan, 1)
			if err != nil {
				return nil, err
			}
			add(&out, &measure.Report{Info: info})
			continue
		}
		if tell := c.SoFar; tell != nil {
			c.SoFar = func(runs []results.Run) { tell(slices.Concat(out.Runs, runs)) }
		}
		r, err := sim.Run(ctx, c)
		if r == nil {
			return nil, err
		}
		add(&out, &measure.Report{Runs: r.Runs, Info: r.Info, Interrupted: r.Interrupted})
		if r.Interrupted {
			break
		}
	}
	return &sim.Report{Runs: out.Runs, Info: out.Info, Interrupted: out.Interrupted}, results.Invalid(out.Runs)
}

// Deal leaves in points, as [Simulations] makes them, the strategies whose simulations are a part's.
func Deal(points []sim.Config, part workloads.Shard) {
	n := 0
	for i := range points {
		selected, _ := points[i].Split()
		points[i].Strategies = slices.DeleteFunc(selected, func(strategies.Selection) bool {
			n++
			return !part.Has(n - 1)
		})
	}
}

// add adds the report of one point to that of all.
func add(r, more *measure.Report) {
	begun := func(r *measure.Report) bool { return len(r.Runs) > 0 || r.Info.Loop != "" }
	if begun(more) {
		notes := more.Info.Notes
		if begun(r) { // what is true of all points
			notes = slices.DeleteFunc(slices.Clone(notes), func(n string) bool { return !slices.Contains(r.Info.Notes, n) })
		}
		r.Info = more.Info
		r.Info.Notes = notes
	}
	r.Runs = append(r.Runs, more.Runs...)
	r.Interrupted = r.Interrupted || more.Interrupted
	for _, s := range more.Skipped {
		if !slices.Contains(r.Skipped, s) {
			r.Skipped = append(r.Skipped, s)
		}
	}
}

// Points are the configurations of all combinations of the parameters' values: base with
// these in place. One that makes no sense is an error that names it.
//
// A parameter is one of [Parameters], an option of the workload, or one of strategies:
// NAME for all that have it, STRATEGY.NAME for one of them.
func Points(base measure.Config, params []results.Swept) ([]measure.Config, error) {
	return points(base, params, nil, measured)
}

// Simulations are the simulations of all combinations of the parameters' values, as [Points] makes them. The pool,
// client-retries and client, which no simulation has, are no parameters.
func Simulations(base sim.Config, params []results.Swept) (out []sim.Config, err error) {
	base.Every = -1 // series of one strategy could not be told apart
	for _, p := range params {
		if slices.Contains([]string{"pool", "client-retries", "client"}, p.Name) {
			return nil, fmt.Errorf("%s: a simulation opens no connections", p.Name)
		}
	}
	_, err = points(measure.Config{Plan: base.Plan}, params, simulated, func(c *measure.Config) error {
		s := base
		s.Plan = c.Plan
		for _, p := range params {
			if f := simulated[p.Name]; f != nil {
				if err := f(&s, c.Point[p.Name]); err != nil {
					return err
				}
			}
		}
		out = append(out, s)
		return out[len(out)-1].Complete()
	})
	return out, err
}

type simulations map[string]func(c *sim.Config, v string) error

// simulated are the parameters that only a simulation has: by how much the clock of the first instance is ahead,
// the seed, and when virtual time begins.
var simulated = simulations{
	"skew": func(c *sim.Config, v string) error {
		d, err := time.ParseDuration(v)
		c.Topology.Skew = []time.Duration{d}
		return err
	},
	"seed": func(c *sim.Config, v string) (err error) {
		c.Seed, err = strconv.ParseUint(v, 10, 64)
		return err
	},
	"start": func(c *sim.Config, v string) (err error) {
		c.Start, err = time.Parse(time.RFC3339, v)
		return err
	},
}

// points are the combinations, each of which must fit. Parameters that are set apart are left to that.
func points(base measure.Config, params []results.Swept, apart simulations, fits func(*measure.Config) error) (
	[]measure.Config, error,
) {
	combinations := []map[string]string{{}}
	for _, p := range params {
		var next []map[string]string
		for _, c := range combinations {
			for _, v := range p.Values {
				c := maps.Clone(c)
				c[p.Name] = v
				next = append(next, c)
			}
		}
		if combinations = next; len(next) > MaxPoints {
			return nil, fmt.Errorf("the values make more than %d combinations: give fewer", MaxPoints)
		}
	}
	var out []measure.Config
	runs := 0
	for _, values := range combinations {
		c, err := at(base, params, values, apart, fits)
		if err != nil {
			return nil, err
		}
		if runs += len(c.Strategies) * c.Rounds; runs > measure.MaxRuns {
			return nil, fmt.Errorf("the sweep has more than %d runs, and a record holds no more: give fewer values, "+
				"rounds or strategies", measure.MaxRuns)
		}
		out = append(out, c)
	}
	return out, nil
}

// at is base with these values.
func at(base measure.Config, params []results.Swept, values map[string]string, apart simulations, fits func(*measure.Config) error) (
	measure.Config, error,
) {
	c := base
	c.Point = values
	for _, p := range params {
		if apart[p.Name] != nil {
			continue
		}
		if err := set(&c, p.Name, values[p.Name]); err != nil {
			return c, fmt.Errorf("%s %s: %w", p.Name, values[p.Name], err)
		}
	}
	if c.Workers < c.Instances {
		return c, fmt.Errorf("%d instances have only %d workers%s: each needs one", c.Instances, c.Workers, where(params, values))
	}
	if err := fits(&c); err != nil {
		return c, fmt.Errorf("%w%s", err, where(params, values))
	}
	return c, nil
}

// measured completes a point, and reports what a measurement cannot have.
func measured(c *measure.Config) error {
	err := c.Complete()
	if err == nil {
		var info workloads.Info
		if _, info, err = c.NewStream(1); err == nil {
			_, err = c.CheckReplay(info, measure.MaxDuration)
		}
	}
	return err
}

// where names a combination of values.
func where(params []results.Swept, values map[string]string) string {
	var parts []string
	for _, p := range params {
		parts = append(parts, p.Name+" "+values[p.Name])
	}
	return " (at " + strings.Join(parts, ", ") + ")"
}

// settable are the parameters of a measurement that can be swept.
var settable = map[string]func(c *measure.Config, v string) error{
	"workers":        whole(func(c *measure.Config) *int { return &c.Workers }, 1),
	"instances":      whole(func(c *measure.Config) *int { return &c.Instances }, 1),
	"pool":           whole(func(c *measure.Config) *int { return &c.Pool }, 1),
	"client-retries": whole(func(c *measure.Config) *int { return &c.ClientRetries }, 0),
	"limit":          whole(func(c *measure.Config) *int64 { return &c.Policy.Limit }, 1),
	"requests":       whole(func(c *measure.Config) *int64 { return &c.Requests }, 1),
	Rate:             setRate,
	"duration":       length(func(c *measure.Config) *time.Duration { return &c.Duration }),
	"client":         setClient,
	"latency":        setLatency,
	"life":           length(func(c *measure.Config) *time.Duration { return &c.Life }),
}

// Parameters are the names that every measurement has, sorted: workers, instances, pool
// and so on.
func Parameters() []string { return slices.Sorted(maps.Keys(settable)) }

func whole[T int | int64](of func(*measure.Config) *T, least int64) func(*measure.Config, string) error {
	return func(c *measure.Config, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < least {
			return fmt.Errorf("give a whole number of %d or more", least)
		}
		*of(c) = T(n)
		return nil
	}
}

func length(of func(*measure.Config) *time.Duration) func(*measure.Config, string) error {
	return func(c *measure.Config, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			return errors.New("give a time above 0 with its unit, e.g. 400ms")
		}
		*of(c) = d
		return nil
	}
}

// samples are enough for the 99th percentile of a round.
const samples = 400

// LongEnough is how long a round of an open loop lasts at least, so that it has a 99th
// percentile.
func LongEnough(rate float64) time.Duration {
	return time.Duration(samples / rate * float64(time.Second))
}

// setRate makes the loop an open one at that rate, long enough for its percentiles.
func setRate(c *measure.Config, v string) error {
	x, err := strconv.ParseFloat(v, 64)
	switch {
	case err != nil || !(x > 0 && x <= harness.MaxRate):
		return fmt.Errorf("give a number of requests per second above 0, and at most %g", harness.MaxRate)
	case c.Load.Loop == workloads.Closed || c.Load.Loop == harness.Both:
		return errors.New("a rate is swept in an open loop alone")
	case c.Stream.Speed > 0:
		return errors.New("a trace that is replayed at its speed has a rate of its own")
	}
	c.Load = harness.OpenAt(x)
	if c.Duration > 0 {
		c.Duration = max(c.Duration, LongEnough(x))
	}
	return nil
}

// setLatency adds a latency to the network to Redis.
func setLatency(c *measure.Config, v string) error {
	text := string(strategies.NeedRedis) + ":latency=" + v
	if _, err := network.Parse(text); err != nil {
		return errors.New("give a time with its unit, e.g. 5ms")
	}
	c.Network = append(slices.Clip(c.Network), text)
	return nil
}

// setClient gives strategies that ask a Redis a kind of client.
func setClient(c *measure.Config, v string) error {
	kind, err := strategies.ParseClient(v)
	if err != nil {
		return err
	}
	for _, s := range c.Strategies {
		if s.Client != "" && s.Client != strategies.PlainClient {
			return fmt.Errorf("%s names its client: leave one of them out", s)
		}
	}
	c.Strategies = slices.Clone(c.Strategies)
	for i := range c.Strategies {
		c.Strategies[i].Client = "" // plain ones are meant to be swept
	}
	c.Strategies = strategies.WithClients(c.Strategies, []strategies.Client{kind})
	return nil
}

// set gives a parameter its value.
func set(c *measure.Config, name, v string) error {
	if f := settable[name]; f != nil {
		return f(c, v)
	}
	if i := slices.IndexFunc(c.Workload.Options, func(o quota.Option) bool { return o.Name == name }); i >= 0 {
		if err := c.Workload.Options[i].Accepts(v); err != nil {
			return err
		}
		c.Stream.Set(name, v)
		return nil
	}
	return setOption(c, name, v)
}

// setOption gives strategies an option's value.
func setOption(c *measure.Config, name, v string) error {
	only, option, qualified := strings.Cut(name, ".")
	if !qualified {
		only, option = "", name
	}
	var without []string
	known := Parameters()
	for _, o := range c.Workload.Options {
		known = append(known, o.Name)
	}
	c.Strategies = slices.Clone(c.Strategies)
	found := false
	for i, s := range c.Strategies {
		for _, o := range s.Meta.Options {
			known = append(known, s.Name+"."+o.Name)
		}
		switch has := slices.ContainsFunc(s.Meta.Options, func(o quota.Option) bool { return o.Name == option }); {
		case qualified && s.Name != only:
			continue
		case !has:
			without = append(without, s.Name)
			continue
		}
		found = true
		options := maps.Clone(s.Options)
		options[option] = v
		var err error
		meta, unknown := strategies.Lookup(s.Name)
		if unknown != nil { // a caller's own, that is not registered
			meta = s.Meta
		}
		if c.Strategies[i], err = meta.Select(options); err != nil {
			return err
		}
	}
	if !found {
		return quota.Unknown("parameter", name, known, "")
	}
	if len(without) > 0 {
		return fmt.Errorf("%s has no option %s: name the strategy that has it, as in %s", without[0], option, "STRATEGY."+option)
	}
	return unequal(c.Strategies)
}

// unequal reports strategies that the value makes the same.
func unequal(all []strategies.Selection) error {
	for i, s := range all {
		for _, o := range all[:i] {
			if o.String() == s.String() {
				return fmt.Errorf("it makes two of the strategies the same: %s", s)
			}
		}
	}
	return nil
}
