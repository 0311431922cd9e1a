package condition

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/results"
)

// sel is the field of a value, by the name that it has in the files, or a figure. A list gives that of each element.
func sel(value any, name string) (any, error) {
	switch x := value.(type) {
	case missing:
		return x, nil
	case *Record:
		return sel(x.row(""), name)
	case []any:
		return selAll(x, name)
	case object:
		return x.sel(name), nil
	case Number:
		if x.part.IsValid() {
			return x.part.sel(name), nil
		}
	}
	return nil, fmt.Errorf("a number has no %s", name)
}

// selAll selects from each value of a list.
func selAll(values []any, name string) (any, error) {
	out := make([]any, len(values))
	for i := range values {
		var err error
		out[i], err = sel(values[i], name)
		if err != nil {
			return nil, err
		}
	}
	if len(values) > 0 && isSearch(values[0]) {
		return overSearches(out, name), nil
	}
	return planned(out), nil
}

const errDiscarded = "a round did not happen as planned"

// planned leaves out the rounds that did not happen as planned, if there are others.
func planned(rounds []any) []any {
	kept := slices.DeleteFunc(slices.Clone(rounds), func(value any) bool {
		m, ok := value.(missing)
		return ok && m.why == errDiscarded
	})
	if len(kept) == 0 || len(kept) == len(rounds) {
		return rounds
	}
	return kept
}

func (o object) sel(name string) any {
	switch x := o.Interface().(type) {
	case *results.Summary:
		if figure := figureOf(name); figure != nil {
			return o.figureWithParts(x, figure, name)
		}
		switch name {
		case "runs":
			return o.runs(x)
		case "series":
			return o.series(x.Label)
		}
	case *results.Search:
		if _, field := figures.At(o.Value, name); !field {
			return found(x, results.Property(strings.ReplaceAll(name, "_", "-")))
		}
	case *results.Run:
		timed := strings.HasSuffix(name, "_ns") || strings.HasSuffix(name, "_per_s") || name == "jobs"
		if err := x.Err(); err != nil {
			return missing{err.Error(), o.record.measured()}
		} else if timed && (x.Partial || !x.Audit.Planned()) {
			return missing{errDiscarded, true}
		}
		if timed {
			o.record = o.record.told(x)
		}
	case results.Series:
		if i := slices.Index(x.Counters, name); i >= 0 {
			var out []any
			for _, sample := range x.Samples {
				out = append(out, object{reflect.ValueOf(sample.Counters[i]), o.record})
			}
			return out
		}
	}
	at, ok := figures.At(o.Value, name)
	if !ok {
		return absent("the record has no %s here", name)
	}
	if whole, partly := o.possible(name); partly {
		return whole
	}
	return o.record.wrap(at, name)
}

// figureWithParts is a figure from which fields of the record can be selected that have its name.
func (o object) figureWithParts(summary *results.Summary, figure *figures.Figure, name string) any {
	value := o.figure(summary, figure)
	number, ok := value.(Number)
	if !ok {
		return value
	}
	at, ok := figures.At(o.Value, name)
	if ok {
		number.part = object{at, o.record}
	}
	return number
}

// figure is one of the registry. What has an upper end of its own has it here, too.
func (o object) figure(summary *results.Summary, figure *figures.Figure) any {
	value, err := figure.Value(summary)
	if err != nil {
		return missing{err.Error(), o.record.measured() && figure.Counts > figures.Always}
	}
	out := o.record.exact(value, figure.Unit)
	if path, last, ok := cutLast(figure.From); ok {
		if parent, ok := figures.At(reflect.ValueOf(summary), path); ok {
			if n, partly := (object{parent, o.record}).possible(last); partly {
				n.Unit = figure.Unit
				n.varies = out.varies
				return n
			}
		}
	}
	if figure.Counts < figures.Timed || !o.record.measured() {
		return out
	}
	if figure.AtRate {
		summary = summary.AtRate()
	}
	rounds := map[int]float64{}
	for i := range o.record.File.Runs {
		run := &o.record.File.Runs[i]
		if run.Key() != summary.Key && run.Paced != nil {
			run = run.Paced
		}
		if x, ok := figure.Round(run); ok && run.Key() == summary.Key && summary.Keeps(run.Repetition) {
			rounds[run.Repetition] = x
		}
	}
	// all rounds together, as reports show it
	whole, ok := o.record.percentile(figure.Percentile(summary), figure.Key).(Number)
	if ok {
		whole.rounds = rounds
		whole.record = o.record
		return whole
	}
	n, ok := timing(rounds, figure.Unit, o.record).(Number)
	if !ok {
		return timing(rounds, figure.Unit, o.record)
	}
	n.disturbed = figure.Disturbed(summary)
	return n
}

func cutLast(path string) (before, last string, ok bool) {
	i := strings.LastIndex(path, ".")
	return path[:max(i, 0)], path[i+1:], i > 0
}

// possible is a count of which only its ends are known: what is certain and what is possible. Other figures of the
// same part are then known from below alone.
func (o object) possible(name string) (Number, bool) {
	whole, ok := figures.At(o.Value, "possible")
	if !ok || name == "possible" || whole.Kind() != reflect.Int64 {
		return Number{}, false
	}
	certain, ok := figures.At(o.Value, "units")
	if count, counted := figures.At(o.Value, "count"); counted {
		certain = count
		ok = true
	}
	at, here := figures.At(o.Value, name)
	if !ok || !here || whole.Int() <= certain.Int() || !at.CanInt() && !at.CanFloat() {
		return Number{}, false
	}
	if n := figures.Numeric(at); at != certain {
		return between(n, math.Inf(1)), true
	}
	return between(float64(certain.Int()), float64(whole.Int())), true
}

func (o object) runs(summary *results.Summary) any {
	var out []any
	for i := range o.record.File.Runs {
		if run := &o.record.File.Runs[i]; run.Key() == summary.Key {
			out = append(out, object{reflect.ValueOf(run), o.record})
		}
	}
	return out
}

func (o object) series(label string) any {
	for i := range o.record.Series {
		if o.record.Series[i].Strategy == label {
			return object{reflect.ValueOf(o.record.Series[i]), o.record}
		}
	}
	return absent("%s has no series: only a simulation has one", label)
}

// wrap is a value of a record as expressions take it.
func (r *Record) wrap(value reflect.Value, name string) any {
	value = reflect.Indirect(value)
	if !value.IsValid() {
		return absent("the record has no %s here", name)
	}
	switch x := value.Interface().(type) {
	case results.Percentile:
		return r.percentile(x, name)
	case results.Figure:
		if x.Rounds == 0 {
			return absent("no round has %s", name)
		}
		return Number{Lo: x.Lo, Hi: x.Hi, Value: x.Value, varies: r.measured()}
	}
	switch {
	case value.CanInt() || value.CanFloat():
		n := r.exact(figures.Numeric(value), "")
		switch {
		case strings.HasSuffix(name, "_ns"), slices.Contains([]string{"p50", "p90", "p99"}, name):
			n.Unit = figures.Nanoseconds
		case strings.HasPrefix(name, "pct_"):
			n.Unit = figures.Percent
		}
		return n
	case value.Kind() == reflect.Bool:
		return truth(value.Bool())
	case value.Kind() == reflect.String:
		return value.String()
	case value.Kind() == reflect.Slice:
		out := make([]any, value.Len())
		for i := range out {
			out[i] = r.wrap(value.Index(i), name)
		}
		return out
	}
	return object{value, r}
}

func (r *Record) percentile(percentile results.Percentile, name string) any {
	if !percentile.Shown() {
		return missing{fmt.Sprintf("%s cannot be told: %s", name, percentile.Status), r.measured()}
	}
	if r.measured() && percentile.Coverage == 0 && !r.anyRounds {
		return absent("%s tell nothing of how much %s varies: give more rounds", format.Number(percentile.Rounds, "round"),
			name)
	}
	return Number{Lo: percentile.Lo, Hi: percentile.Hi, Value: percentile.Value, Unit: figures.Nanoseconds,
		varies: r.measured(), disturbed: percentile.Disturbed || r.explained(percentile)}
}

// explained reports whether waiting for a core may be the whole of a percentile in most rounds, so that it is an upper
// bound of what the strategy takes. A gate is on what was measured, whatever it waited for.
func (r *Record) explained(percentile results.Percentile) bool {
	return !r.anyRounds && 2*percentile.Waited > percentile.Rounds
}

var errNoKeys = errors.New("[ ] takes the label of a strategy, or texts by which one element of a list is told from " +
	"the others")

// index is the strategy with a label, or the element of a list in which some field is equal to each of the texts.
func index(value any, keys []string) (any, error) {
	switch x := value.(type) {
	case missing:
		return x, nil
	case *Record:
		if len(keys) != 1 {
			return nil, errNoKeys
		}
		return x.row(keys[0]), nil
	case object:
		if _, ok := x.Interface().(results.Series); ok {
			return x.sel(keys[0]), nil
		}
		if x.Kind() != reflect.Map {
			return nil, errNoKeys
		}
		return x.record.wrap(x.MapIndex(reflect.ValueOf(keys[0])), keys[0]), nil
	case []any:
		return element(x, keys), nil
	}
	return nil, errNoKeys
}

func element(list []any, keys []string) any {
	lists := len(list) > 0
	for _, value := range list {
		if m, ok := value.(missing); ok {
			return m
		}
		if o, ok := value.(object); ok && o.Kind() == reflect.Struct && o.has(keys) {
			return o
		}
		_, nested := value.([]any)
		lists = lists && nested
	}
	if !lists {
		return absent("the record has no %s here", strings.Join(keys, ", "))
	}
	out := make([]any, len(list))
	for i, value := range list {
		out[i] = element(value.([]any), keys)
	}
	return out
}

func (o object) has(keys []string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool {
		for _, field := range reflect.VisibleFields(o.Type()) {
			if field.Type.Kind() == reflect.String && o.FieldByIndex(field.Index).String() == key {
				return false
			}
		}
		return true
	})
}
