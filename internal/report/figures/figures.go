// Package figures declares every figure of a strategy once: its name and unit, where it
// stands in a record, when it counts, how it is shown, and which direction is better.
// Tables, gates, comparisons, exports and docs/metrics.md are lists of these.
package figures

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/results"
)

// Figure is one number of a strategy: of a round, and over all rounds.
type Figure struct {
	// Key names it in conditions, comparisons and lists of columns, e.g. "leak-pct".
	Key string `json:"key"`
	// Name heads its column. A line break is where a narrow table breaks it.
	Name string `json:"name"`
	// Over is a heading above the columns of several figures.
	Over string `json:"over"`
	// From is where a [results.Run] and a [results.Summary] have it, by the names of
	// results.json, e.g. "leak.units". What begins with "latency." is in [results.Summary.Latency].
	// It is empty if a function computes it, and if a round alone has it.
	From string `json:"from"`
	// RoundFrom is where a [results.Run] has it, if a summary does not.
	RoundFrom string `json:"round_from"`
	// Unit of its number.
	Unit Unit `json:"unit"`
	// Noun is what it counts, e.g. "requests"; empty for units of the policy.
	Noun string `json:"noun"`
	// Better says which direction is.
	Better Direction `json:"better"`
	// Counts says when it does.
	Counts Condition `json:"counts"`
	// AtRate is set if it is of the open loop at the common rate, if there is one.
	AtRate bool `json:"at_rate"`
	// Blank is set if 0 says that there is nothing to show.
	Blank bool `json:"blank"`
	// Missing says why a record may lack it.
	Missing string `json:"missing"`
	// CSV names its column in runs.csv, with the unit; empty if it has none.
	CSV string `json:"csv"`
	// Bench is its unit in Go's benchmark format; empty if it is not reported there.
	Bench string `json:"bench"`
	// Doc is its definition in one line.
	Doc string `json:"doc"`

	of   func(*results.Summary) (float64, bool)
	run  func(*results.Run) (float64, bool)
	text func(*results.Summary, *Notes) string
}

// Unit of a figure's number.
type Unit string

// The units.
const (
	Count       Unit = "count"
	Units       Unit = "units of the policy"
	Percent     Unit = "%"
	Nanoseconds Unit = "ns"
	PerSecond   Unit = "per s"
	PerDecision Unit = "per decision"
	Ratio       Unit = "ratio"
)

// Direction in which a figure is better.
type Direction string

// Neither is the direction of figures that only describe what was run. Others are "lower" or "higher".
const Neither Direction = ""

// Condition under which a figure counts.
type Condition int

// conditions are the names that declarations have for them.
var conditions = []string{"", "valid", "timed"}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (c *Condition) UnmarshalText(name []byte) error {
	*c = Condition(slices.Index(conditions, string(name)))
	if *c < Always {
		return fmt.Errorf("no figure counts if it is %q", name)
	}
	return nil
}

// The conditions. A figure of an Always counts in every round.
const (
	Always Condition = iota
	Valid            // some round's figures of correctness count
	Timed            // always: it is a timing, which is marked if it was disturbed
)

var errInvalid = errors.New("no round is valid")

var byKey = sync.OnceValue(func() map[string]*Figure {
	all := All()
	out := map[string]*Figure{}
	for i := range all {
		out[all[i].Key] = &all[i]
	}
	return out
})

// Of is the figure with a key. It panics if there is none: keys are written by programmers.
func Of(key string) *Figure {
	if figure := Lookup(key); figure != nil {
		return figure
	}
	panic("figures: there is no " + key)
}

// Lookup is the figure with a key, or nil.
func Lookup(key string) *Figure { return byKey()[key] }

// Keys are those of the figures that a summary has, sorted.
func Keys() (out []string) {
	for _, figure := range All() {
		if figure.of != nil || figure.From != "" {
			out = append(out, figure.Key)
		}
	}
	slices.Sort(out)
	return out
}

// Value is the figure over all rounds. An error says why there is none, or why it does
// not count.
func (f *Figure) Value(summary *results.Summary) (float64, error) {
	if f.AtRate {
		summary = summary.AtRate()
	}
	switch {
	case f.Counts == Valid && !summary.Counts():
		return 0, errInvalid
	case f.of != nil:
		value, ok := f.of(summary)
		if !ok {
			return 0, errors.New(f.Missing)
		}
		return value, nil
	}
	v, ok := f.in(summary)
	if !ok {
		return 0, errors.New(f.Missing)
	}
	switch x := v.Interface().(type) {
	case results.Percentile:
		if !x.Shown() {
			return 0, errors.New("it cannot be shown: " + string(x.Status))
		}
		return x.Value, nil
	case results.Figure:
		return x.Value, nil
	}
	return Numeric(v), nil
}

// Round is the figure of one round, if the round has it.
func (f *Figure) Round(run *results.Run) (float64, bool) {
	if f.run != nil {
		return f.run(run)
	}
	var value any = run
	from, latency := strings.CutPrefix(cmp.Or(f.RoundFrom, f.From), "latency.")
	if latency {
		value = run.Latency()
	}
	v, ok := At(reflect.ValueOf(value), from)
	x := Numeric(v)
	return x, ok && (x > 0 || !f.Blank)
}

// UnitOf is what a round's number counts, in the policy's own unit if it counts those.
func (f *Figure) UnitOf(run *results.Run) string {
	if f.Unit == Units {
		return run.Params.Unit
	}
	return f.Noun
}

// Percentile is the percentile over all rounds of a figure that is one.
func (f *Figure) Percentile(summary *results.Summary) results.Percentile {
	if f.AtRate {
		summary = summary.AtRate()
	}
	value, ok := f.in(summary)
	if !ok {
		return results.Percentile{Status: codes.NoSamples}
	}
	percentile, _ := value.Interface().(results.Percentile)
	return percentile
}

// in finds the figure in a summary, of which the right loop has been taken. One of no round is missing.
func (f *Figure) in(summary *results.Summary) (reflect.Value, bool) {
	if rest, ok := strings.CutPrefix(f.From, "latency."); ok {
		return At(reflect.ValueOf(summary.Latency()), rest)
	}
	value, ok := At(reflect.ValueOf(summary), f.From)
	if ok && value.Type() == reflect.TypeFor[results.Figure]() {
		ok = value.FieldByName("Rounds").Int() > 0
	}
	return value, ok
}

// At follows a path of JSON names. It finds nothing if a part is absent.
func At(value reflect.Value, path string) (reflect.Value, bool) {
	for name := range strings.SplitSeq(path, ".") {
		value = reflect.Indirect(value)
		if name == "" || !value.IsValid() || value.Kind() != reflect.Struct {
			return value, false
		}
		index, ok := field(value.Type(), name)
		if !ok {
			return value, false
		}
		value = value.FieldByIndex(index)
	}
	value = reflect.Indirect(value)
	return value, value.IsValid()
}

type fieldName struct {
	kind reflect.Type
	name string
}

var fields sync.Map // index by fieldName, since a table asks for the same ones in every row

func field(kind reflect.Type, name string) ([]int, bool) {
	if index, ok := fields.Load(fieldName{kind, name}); ok {
		return index.([]int), true
	}
	for _, field := range reflect.VisibleFields(kind) {
		if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); tag == name {
			fields.Store(fieldName{kind, name}, field.Index)
			return field.Index, true
		}
	}
	return nil, false
}

// Numeric is the number of a field; 0 if it is none.
func Numeric(value reflect.Value) float64 {
	switch {
	case value.CanInt():
		return float64(value.Int())
	case value.CanFloat():
		return value.Float()
	}
	return 0
}
