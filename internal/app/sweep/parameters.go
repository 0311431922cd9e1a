package sweep

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/workloads"
)

// settable are the parameters that are more than a number.
var settable = map[string]func(config *measure.Config, text string) error{
	Rate:       setRate,
	"latency":  setLatency,
	"failover": setFailover,
}

// Parameters are the names that every measurement has, sorted: workers, instances, pool
// and so on.
func Parameters() []string {
	names := slices.AppendSeq(group.Parameters(), maps.Keys(settable))
	slices.Sort(names)
	return names
}

// samples are enough for the 99th percentile of a round.
const samples = 400

// LongEnough is how long a round of an open loop lasts at least, so that it has a 99th
// percentile.
func LongEnough(rate float64) time.Duration {
	return time.Duration(samples / rate * float64(time.Second))
}

// setRate makes the loop an open one at that rate, long enough for its percentiles.
func setRate(config *measure.Config, text string) error {
	value, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || !(value > 0 && value <= bounds.MaxRate):
		return fmt.Errorf("give a number of requests per second above 0, and at most %g", bounds.MaxRate)
	case config.Load.Loop == workloads.Closed || config.Load.Loop == harness.Both:
		return errors.New("a rate is swept in an open loop alone")
	case config.Stream.Speed() > 0:
		return errors.New("a trace that is replayed at its speed has a rate of its own")
	}
	config.Load = harness.OpenAt(value)
	if config.Duration > 0 {
		config.Duration = max(config.Duration, LongEnough(value))
	}
	return nil
}

// setLatency adds a latency to the network to Redis.
func setLatency(config *measure.Config, text string) error {
	event, err := trouble.Parse(string(strategies.NeedRedis) + ":latency=" + text)
	if err != nil {
		return errors.New("give a time with its unit, e.g. 5ms")
	}
	config.Trouble = append(slices.Clip(config.Trouble), event)
	return nil
}

// setFailover has a replica be so far behind when it takes a store's place.
func setFailover(config *measure.Config, text string) error {
	duration, err := time.ParseDuration(text)
	i := slices.IndexFunc(config.Trouble, func(event trouble.Event) bool { return event.What.Word == trouble.Failover })
	switch {
	case err != nil || duration < 0:
		return errors.New("give a time with its unit, e.g. 5ms")
	case i < 0:
		return errors.New("no replica takes the place of a store: give --trouble redis:failover@0.5-0.52 as well")
	}
	config.Trouble = slices.Clone(config.Trouble)
	config.Trouble[i].What.For = duration
	return nil
}

// set gives a parameter of a command its value.
func set(command group.Command, config *measure.Config, name, v string) error {
	if known, err := group.Vary(command, config, name, v); known {
		return err
	}
	if f := settable[name]; f != nil {
		return f(config, v)
	}
	if i := slices.IndexFunc(config.Workload.Options, func(option quota.Option) bool {
		return option.Name == name
	}); i >= 0 {
		if err := config.Workload.Options[i].Accepts(v); err != nil {
			return err
		}
		config.Stream.Set(name, v)
		return nil
	}
	return setOption(config, name, v)
}

// setOption gives strategies an option's value.
func setOption(config *measure.Config, name, v string) error {
	only, option, qualified := strings.Cut(name, ".")
	if !qualified {
		only = ""
		option = name
	}
	var without []string
	known := Parameters()
	for _, option := range config.Workload.Options {
		known = append(known, option.Name)
	}
	config.Strategies = slices.Clone(config.Strategies)
	found := false
	for i, selection := range config.Strategies {
		for _, option := range selection.Meta.Options {
			known = append(known, selection.Name+"."+option.Name)
		}
		switch has := slices.ContainsFunc(selection.Meta.Options, func(o quota.Option) bool { return o.Name == option }); {
		case qualified && selection.Name != only:
			continue
		case !has:
			without = append(without, selection.Name)
			continue
		}
		found = true
		options := maps.Clone(selection.Options)
		options[option] = v
		var err error
		meta, unknown := strategies.Lookup(selection.Name)
		if unknown != nil { // a caller's own, that is not registered
			meta = selection.Meta
		}
		config.Strategies[i], err = meta.Select(options)
		if err != nil {
			return err
		}
	}
	if !found {
		return quota.Unknown("parameter", name, known, "")
	}
	if len(without) > 0 {
		return fmt.Errorf("%s has no option %s: name the strategy that has it, as in %s", without[0], option, "STRATEGY."+
			option)
	}
	return unequal(config.Strategies)
}

// unequal reports strategies that the value makes the same.
func unequal(all []strategies.Selection) error {
	for i, selection := range all {
		for _, o := range all[:i] {
			if o.String() == selection.String() {
				return fmt.Errorf("it makes two of the strategies the same: %s", selection)
			}
		}
	}
	return nil
}

// The most values of one parameter, and the most parameters.
const (
	MaxValues     = 100
	MaxParameters = 2
)

// Parse reads NAME=VALUES: values with commas between them, of which each may be a range
// such as 1..64x2 (from 1 to 64, each twice the last) or 0..1+0.25 (from 0 to 1 in steps
// of 0.25). Bounds are numbers or times.
func Parse(text string) (results.Swept, error) {
	name, values, ok := strings.Cut(text, "=")
	swept := results.Swept{Name: strings.TrimSpace(name)}
	if strings.ContainsAny(swept.Name, "/@?") { // it may be a URL with a password, and is not shown
		return swept, errors.New("a parameter is given as NAME=VALUES, e.g. workers=1,8,64 or pool=1..64x2")
	}
	if !ok || swept.Name == "" || values == "" {
		return swept, fmt.Errorf("%q is not of the form NAME=VALUES, e.g. workers=1,8,64 or pool=1..64x2", text)
	}
	for item := range strings.SplitSeq(values, ",") {
		item = strings.TrimSpace(item)
		more, err := expand(item)
		switch {
		case err != nil:
			return swept, fmt.Errorf("%s: %w", swept.Name, err)
		case len(swept.Values)+len(more) > MaxValues:
			return swept, fmt.Errorf("%s has more than %d values: give a larger step", swept.Name, MaxValues)
		}
		for _, text := range more {
			if slices.Contains(swept.Values, text) {
				return swept, fmt.Errorf("%s is given the value %s twice", swept.Name, text)
			}
			swept.Values = append(swept.Values, text)
		}
	}
	return swept, nil
}

// ParseAll reads one or two parameters.
func ParseAll(texts []string) ([]results.Swept, error) {
	switch n := len(texts); {
	case n == 0:
		return nil, errors.New("no parameter to sweep: give one such as workers=1,8,64")
	case n > MaxParameters:
		return nil, fmt.Errorf("%d parameters to sweep: give at most %d", n, MaxParameters)
	}
	var out []results.Swept
	for _, text := range texts {
		swept, err := Parse(text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o results.Swept) bool { return o.Name == swept.Name }) {
			return nil, fmt.Errorf("%s is given twice: write all its values into one", swept.Name)
		}
		out = append(out, swept)
	}
	return out, nil
}

// ParseInterval reads LOW..HIGH, two numbers of which the second is larger.
func ParseInterval(text string) (low, high float64, err error) {
	from, to, ok := strings.Cut(text, "..")
	low, err1 := strconv.ParseFloat(from, 64)
	high, err2 := strconv.ParseFloat(to, 64)
	if !ok || err1 != nil || err2 != nil || !(low > 0 && low < high) || math.IsInf(high, 0) {
		return 0, 0, fmt.Errorf("%q is no interval: give two rates such as 500..20000, the lower one first", text)
	}
	return low, high, nil
}

var ranged = regexp.MustCompile(`^(.+?)\.\.(.+?)(?:([x+])(.+))?$`)

// expand returns the values that an item stands for.
func expand(item string) ([]string, error) {
	if item == "" {
		return nil, errors.New("a value is empty")
	}
	texts := ranged.FindStringSubmatch(item)
	if texts == nil {
		return []string{item}, nil
	}
	var of [2]float64
	unit := false
	for i, text := range texts[1:3] {
		value, ok := stat.ParseValue(text)
		_, err := strconv.ParseFloat(text, 64)
		if !ok || i == 1 && unit != (err != nil) {
			return nil, fmt.Errorf("%q is no range: its bounds are two numbers or two times", item)
		}
		of[i] = value
		unit = err != nil
	}
	if texts[3] == "" {
		return nil, fmt.Errorf("%q has no step: write %sx2 to double, or %s+STEP", item, item, item)
	}
	step, ok := stat.ParseValue(texts[4])
	if !ok || texts[3] == "x" && (step <= 1 || of[0] <= 0) || texts[3] == "+" && step <= 0 || of[1] < of[0] {
		return nil, fmt.Errorf("%q is no range: it rises, by a step above 0 or from above 0 by a factor above 1", item)
	}
	var out []string
	const slack = 1e-9 // of sums of binary fractions
	for i := 0; ; i++ {
		value := of[0] + float64(i)*step
		if texts[3] == "x" {
			value = of[0] * math.Pow(step, float64(i))
		}
		if value > of[1]*(1+slack) {
			return out, nil
		}
		if len(out) == MaxValues {
			return nil, fmt.Errorf("%q has more than %d values: give a larger step", item, MaxValues)
		}
		out = append(out, written(value, unit))
	}
}

// written is a number as one would write it, without what binary fractions add.
func written(value float64, isTime bool) string {
	if isTime {
		return time.Duration(math.Round(value)).String()
	}
	value, _ = strconv.ParseFloat(strconv.FormatFloat(value, 'g', 12, 64), 64)
	return strconv.FormatFloat(value, 'f', -1, 64)
}
