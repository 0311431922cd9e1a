package claims

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
func sel(v any, name string) (any, error) {
	switch x := v.(type) {
	case missing:
		return x, nil
	case *Record:
		return sel(x.row(""), name)
	case []any:
		out := make([]any, len(x))
		for i := range x {
			var err error
			out[i], err = sel(x[i], name)
			if err != nil {
				return nil, err
			}
		}
		if len(x) > 0 && isSearch(x[0]) {
			return overSearches(out, name), nil
		}
		return planned(out), nil
	case object:
		return x.sel(name), nil
	case Number:
		if x.part.IsValid() {
			return x.part.sel(name), nil
		}
	}
	return nil, fmt.Errorf("a number has no %s", name)
}

const errDiscarded = "a round did not happen as planned"

// planned leaves out the rounds that did not happen as planned, if there are others.
func planned(rounds []any) []any {
	kept := slices.DeleteFunc(slices.Clone(rounds), func(v any) bool {
		m, ok := v.(missing)
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
		if f := figures.Lookup(strings.ReplaceAll(name, "_", "-")); f != nil {
			v := o.figure(x, f)
			if n, ok := v.(Number); ok {
				if at, ok := figures.At(o.Value, name); ok {
					n.part = object{at, o.of}
				}
				return n
			}
			return v
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
			return missing{err.Error(), o.of.measured()}
		} else if timed && (x.Partial || !x.Audit.Planned()) {
			return missing{errDiscarded, true}
		}
		if timed {
			o.of = o.of.told(x)
		}
	case results.Series:
		if i := slices.Index(x.Counters, name); i >= 0 {
			var out []any
			for _, s := range x.Samples {
				out = append(out, object{reflect.ValueOf(s.Counters[i]), o.of})
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
	return o.of.wrap(at, name)
}

// figure is one of the registry. What has an upper end of its own has it here, too.
func (o object) figure(s *results.Summary, f *figures.Figure) any {
	v, err := f.Value(s)
	if err != nil {
		return missing{err.Error(), o.of.measured() && f.Counts > figures.Always}
	}
	out := o.of.exact(v, f.Unit)
	if path, last, ok := cutLast(f.From); ok {
		if parent, ok := figures.At(reflect.ValueOf(s), path); ok {
			if n, partly := (object{parent, o.of}).possible(last); partly {
				n.Unit = f.Unit
				n.varies = out.varies
				return n
			}
		}
	}
	if f.Counts < figures.Timed || !o.of.measured() {
		return out
	}
	if f.AtRate {
		s = s.AtRate()
	}
	rounds := map[int]float64{}
	for i := range o.of.File.Runs {
		r := &o.of.File.Runs[i]
		if r.Key() != s.Key && r.Paced != nil {
			r = r.Paced
		}
		if x, ok := f.Round(r); ok && r.Key() == s.Key && s.Keeps(r.Repetition) {
			rounds[r.Repetition] = x
		}
	}
	whole, ok := o.of.percentile(f.Percentile(s), f.Key).(Number) // all rounds together, as reports show it
	if ok {
		whole.rounds = rounds
		whole.record = o.of
		return whole
	}
	n, ok := timing(rounds, f.Unit, o.of).(Number)
	if !ok {
		return timing(rounds, f.Unit, o.of)
	}
	n.disturbed = f.Disturbed(s)
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

func (o object) runs(s *results.Summary) any {
	var out []any
	for i := range o.of.File.Runs {
		if r := &o.of.File.Runs[i]; r.Key() == s.Key {
			out = append(out, object{reflect.ValueOf(r), o.of})
		}
	}
	return out
}

func (o object) series(label string) any {
	for i := range o.of.Series {
		if o.of.Series[i].Strategy == label {
			return object{reflect.ValueOf(o.of.Series[i]), o.of}
		}
	}
	return absent("%s has no series: only a simulation has one", label)
}

// wrap is a value of a record as expressions take it.
func (r *Record) wrap(v reflect.Value, name string) any {
	v = reflect.Indirect(v)
	if !v.IsValid() {
		return absent("the record has no %s here", name)
	}
	switch x := v.Interface().(type) {
	case results.Percentile:
		return r.percentile(x, name)
	case results.Figure:
		if x.Rounds == 0 {
			return absent("no round has %s", name)
		}
		return Number{Lo: x.Lo, Hi: x.Hi, Value: x.Value, varies: r.measured()}
	}
	switch {
	case v.CanInt() || v.CanFloat():
		n := r.exact(figures.Numeric(v), "")
		switch {
		case strings.HasSuffix(name, "_ns"), slices.Contains([]string{"p50", "p90", "p99"}, name):
			n.Unit = figures.Nanoseconds
		case strings.HasPrefix(name, "pct_"):
			n.Unit = figures.Percent
		}
		return n
	case v.Kind() == reflect.Bool:
		return truth(v.Bool())
	case v.Kind() == reflect.String:
		return v.String()
	case v.Kind() == reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = r.wrap(v.Index(i), name)
		}
		return out
	}
	return object{v, r}
}

func (r *Record) percentile(p results.Percentile, name string) any {
	if !p.Shown() {
		return missing{fmt.Sprintf("%s cannot be told: %s", name, p.Status), r.measured()}
	}
	if r.measured() && p.Coverage == 0 {
		return absent("%s tell nothing of how much %s varies: give more rounds", format.Number(p.Rounds, "round"), name)
	}
	return Number{Lo: p.Lo, Hi: p.Hi, Value: p.Value, Unit: figures.Nanoseconds, varies: r.measured(), disturbed: p.Disturbed}
}

var errNoKeys = errors.New("[ ] takes the label of a strategy, or texts by which one element of a list is told from the others")

// index is the strategy with a label, or the element of a list in which some field is equal to each of the texts.
func index(v any, keys []string) (any, error) {
	switch x := v.(type) {
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
		return x.of.wrap(x.MapIndex(reflect.ValueOf(keys[0])), keys[0]), nil
	case []any:
		return element(x, keys), nil
	}
	return nil, errNoKeys
}

func element(list []any, keys []string) any {
	lists := len(list) > 0
	for _, x := range list {
		if m, ok := x.(missing); ok {
			return m
		}
		if o, ok := x.(object); ok && o.Kind() == reflect.Struct && o.has(keys) {
			return o
		}
		_, nested := x.([]any)
		lists = lists && nested
	}
	if !lists {
		return absent("the record has no %s here", strings.Join(keys, ", "))
	}
	out := make([]any, len(list))
	for i, x := range list {
		out[i] = element(x.([]any), keys)
	}
	return out
}

func (o object) has(keys []string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool {
		for i := range o.NumField() {
			if f := o.Field(i); f.Kind() == reflect.String && f.String() == key {
				return false
			}
		}
		return true
	})
}
