package condition

import (
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// Record is what a run left, or why it left nothing.
type Record struct {
	// File is that of runs; nil if there is none.
	File *results.File
	// Series are how simulations developed.
	Series []results.Series
	// Exploration is what searches found; nil if there were none.
	Exploration *results.Exploration
	// Why there is no record; empty if there is one.
	Why string
	// Ended is why the run ended before all was measured, if it said so.
	Ended string
	// point is the value of the swept parameter at which expressions are looked at; empty for all.
	point string
	// few is set if fewer rounds have timings than tell how much these vary.
	few bool
	// disturbed is set for timings of a round that are marked.
	disturbed bool
	// anyRounds is set if timings of few rounds count with their extremes, as those of gates do.
	anyRounds bool
}

// Short reports whether the run ended before all was measured. What it has measured is judged.
func (r *Record) Short() bool { return r.Why != "" || r.File != nil && r.File.Interrupted }

// object is a part of a record.
type object struct {
	reflect.Value
	record *Record
}

// measured reports whether another pass may show other figures: the same simulation or search finds the same again.
func (r *Record) measured() bool { return r.File != nil && r.File.Kind == results.Measured }

// exact is a number of the record.
func (r *Record) exact(value float64, unit figures.Unit) Number {
	return Number{Lo: value, Hi: value, Value: value, Unit: unit, varies: r.measured(), few: r.few &&
		r.measured(), disturbed: r.disturbed}
}

// rounds of a strategy that were made, and those that happened as planned.
func (r *Record) rounds(key string) (made, timed int) {
	for i := range r.File.Runs {
		if run := &r.File.Runs[i]; run.Key() == key {
			made++
			if !run.Partial && run.Audit.Planned() {
				timed++
			}
		}
	}
	return made, timed
}

// told is the record for timings of a single round.
func (r *Record) told(round *results.Run) *Record {
	out := *r
	_, timed := r.rounds(round.Key())
	out.few = timed < fewestRounds
	out.disturbed = round.Audit.Disturbed()
	return &out
}

// rows are the summaries of runs and the searches, with their labels, in the order of the record.
func (r *Record) rows() (labels []string, rows []any) {
	add := func(label string, value any) {
		labels = append(labels, label)
		rows = append(rows, object{reflect.ValueOf(value), r})
	}
	if file := r.File; file != nil {
		all := file.Summarised()
		for i := range all {
			summary := &all[i]
			switch {
			case file.Sweep == nil:
				add(summary.Label, summary)
			case r.point == "" || summary.Params.Point[file.Sweep.Parameters[0].Name] == r.point:
				add(file.Sweep.Unswept(summary.Label), summary)
			}
		}
	}
	if exploration := r.Exploration; exploration != nil {
		for _, search := range exploration.Searches {
			add(search.Strategy, search)
		}
	}
	return labels, rows
}

// Summary is that of a strategy, by its label. If there is none, why says so.
func (r *Record) Summary(label string) (summary *results.Summary, why string) {
	switch row := r.row(label).(type) {
	case missing:
		return nil, row.why
	case object:
		summary, _ = row.Interface().(*results.Summary)
	}
	return summary, ""
}

// row is that of a label; an empty one stands for the only strategy. Several points of a sweep are a list.
func (r *Record) row(label string) any {
	if r.Why != "" {
		return missing{why: r.Why}
	}
	labels, rows := r.rows()
	var out []any
	for i, text := range labels {
		if text == label || label == "" && text == labels[0] {
			out = append(out, rows[i])
		}
	}
	switch {
	case label == "" && len(slices.Compact(slices.Sorted(slices.Values(labels)))) > 1:
		return absent("the run has several strategies: write NAME[\"%s\"]", labels[0])
	case len(out) == 1:
		return out[0]
	case len(out) > 1:
		return out
	}
	var skipped []results.Skipped
	if r.File != nil {
		skipped = r.File.Skipped
	} else if r.Exploration != nil {
		skipped = r.Exploration.Skipped
		for _, explore := range r.Exploration.Failed {
			skipped = append(skipped, results.Skipped{Strategy: explore.Strategy, Reason: explore.Error})
		}
	}
	for _, s := range skipped {
		if s.Strategy == label || label == "" {
			return absent("%s took no part: %s", s.Strategy, s.Reason)
		}
	}
	if len(labels) == 0 {
		return absent("the record has no figures: its run ended before them")
	}
	return absent("%s is not in the record, which has %s", label, strings.Join(labels, ", "))
}

// The figures of a search that are no properties: the steps of the shortest schedule that was found, and how many
// properties a schedule breaks.
const (
	Steps           results.Property = "steps"
	Counterexamples results.Property = "counterexamples"
)

// found is what a search says of a property: 0 if no schedule breaks it, else the units of the one that was found,
// or 1. A schedule that was not tried may break it by more.
func found(search *results.Search, property results.Property) any {
	if len(search.Withheld) > 0 {
		return missing{why: search.Withheld[0].Detail}
	}
	switch property {
	case Steps:
		return steps(search)
	case Counterexamples:
		return counterexamples(search)
	}
	if finding := search.Found(property); finding != nil {
		return between(float64(max(1, format.Magnitude(finding.Units))), math.Inf(1))
	}
	switch {
	case !slices.Contains(search.Properties, property):
		return absent("the search did not look for %s", property)
	case len(search.Unmet) == 0 && property == results.Property(quota.PropertyFalseReject) && search.AllowedBy != "":
		return between(float64(max(1, search.AllowedUnits)), math.Inf(1))
	}
	if why := unfinished(search); why != "" {
		return absent("%s", why)
	}
	return exactly(0)
}

// unfinished says why a search that found nothing may have missed something; empty if it may not.
func unfinished(search *results.Search) string {
	switch {
	case !search.Tried():
		return "nothing was tried: " + search.Capped
	case len(search.Unmet) > 0:
		return "no schedule had a fault that was asked for: " + strings.Join(format.Strings(search.Unmet), ", ")
	case search.Capped != "":
		return "the search did not end (" + search.Capped + "), and found none so far"
	}
	return ""
}

// steps of the shortest schedule that was found. No schedule is as short as none.
func steps(search *results.Search) any {
	fewest := math.Inf(1)
	for i := range search.Findings {
		fewest = min(fewest, float64(len(search.Findings[i].Steps)))
	}
	if why := unfinished(search); len(search.Findings) == 0 && why != "" {
		return absent("%s", why)
	}
	return exactly(fewest)
}

// counterexamples counts the properties that a schedule breaks. A search that did not end may have missed some.
func counterexamples(search *results.Search) any {
	count := float64(len(search.Findings))
	switch why := unfinished(search); {
	case why == "":
		return exactly(count)
	case count == 0:
		return absent("%s", why)
	}
	return between(count, math.Inf(1))
}

func isSearch(value any) bool {
	o, ok := value.(object)
	if !ok {
		return false
	}
	_, ok = o.Interface().(*results.Search)
	return ok
}

// overSearches is what all searches of a strategy found together: the shortest schedule, the most units, or none if all
// say so.
func overSearches(list []any, name string) any {
	var out any
	for _, value := range list {
		n, told := value.(Number)
		switch old, found := out.(Number); {
		// what was found stands, and what is not known, too
		case !told && found && old.Hi > 0, told && n.Hi == 0 && out != nil:
		case !told, !found || old.Hi == 0, name == string(Steps) && n.Lo < old.Lo, name != string(Steps) && n.Lo > old.Lo:
			out = value
		}
	}
	return out
}
