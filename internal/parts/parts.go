// Package parts makes the record that one process would have left from those of processes that have each made a part of the
// simulations or searches.
package parts

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/groups"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/workloads"
)

// record is one of a part.
type record[T any] struct {
	name, part, plan string
	interrupted      bool
	of               *T
}

// inOrder are all parts of one plan, by their numbers; an error names the files that do not fit.
func inOrder[T any](all []record[T]) ([]*T, error) {
	out := make([]*T, len(all))
	names := make([]string, len(all))
	for _, r := range all {
		part, err := workloads.ParseShard(r.part)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s is no part of a plan: merge what --part has left", r.name)
		case r.interrupted:
			return nil, fmt.Errorf("%s was interrupted: make part %s again", r.name, r.part)
		case part.Of != len(all):
			return nil, fmt.Errorf("%s is part %s, and there are %s: give all parts", r.name, r.part,
				format.Plural(int64(len(all)), "file", "files"))
		case r.plan != all[0].plan:
			return nil, fmt.Errorf("%s and %s are parts of different plans: the settings or the versions of the program differ",
				all[0].name, r.name)
		case out[part.Part-1] != nil:
			return nil, fmt.Errorf("%s and %s are both part %s", names[part.Part-1], r.name, r.part)
		}
		out[part.Part-1], names[part.Part-1] = r.of, r.name
	}
	return out, nil
}

// Simulations joins the records of all parts. The runs were dealt out in turn.
func Simulations(files []results.Named) (results.File, error) {
	var all []record[results.File]
	for i := range files {
		f := &files[i].File
		all = append(all, record[results.File]{files[i].Name, f.Part, f.Plan, f.Interrupted, f})
	}
	parts, err := inOrder(all)
	if err != nil {
		return results.File{}, err
	}
	whole, of := without(parts[0]), len(parts)
	runs := []results.Run{}
	for i := 0; i/of < len(parts[i%of].Runs); i++ {
		runs = append(runs, parts[i%of].Runs[i/of])
	}
	left := len(runs)
	for _, p := range parts {
		if left -= len(p.Runs); !reflect.DeepEqual(without(p), whole) {
			return whole, fmt.Errorf("parts %s and %s do not fit: their stores or their workloads differ", parts[0].Part, p.Part)
		}
	}
	if left != 0 {
		return whole, errors.New("some part has not all of its runs, or more: make all parts again")
	}
	whole.Runs = runs
	return whole, nil
}

// without is a record without what only its part has.
func without(f *results.File) results.File {
	out := *f
	out.Runs, out.Summaries = nil, nil
	out.Part, out.Plan = "", ""
	return out
}

// Explorations joins the records of all parts, by strategy: a part has all searches of some, and some schedules of the others.
func Explorations(names []string, files []results.Exploration) (results.Exploration, error) {
	out := results.NewExploration()
	var all []record[results.Exploration]
	for i := range files {
		f := &files[i]
		all = append(all, record[results.Exploration]{names[i], f.Part, f.Plan, f.Interrupted, f})
	}
	parts, err := inOrder(all)
	if err != nil {
		return out, err
	}
	for _, strategy := range parts[0].Planned {
		var whole *results.Census
		for _, p := range parts {
			for _, c := range p.Censuses {
				if c.Strategy == strategy {
					whole = counted(whole, c)
				}
			}
		}
		failed := first(parts, strategy, func(p *results.Exploration) []results.FailedExplore { return p.Failed },
			func(x results.FailedExplore) string { return x.Strategy })
		if whole != nil && (len(failed) == 0 || !whole.Complete) { // what failed with nothing counted, failed as a whole
			out.Censuses = append(out.Censuses, whole)
		}
		out.Failed = append(out.Failed, failed...)
		out.Searches = append(out.Searches, first(parts, strategy, func(p *results.Exploration) []*results.Search { return p.Searches },
			func(x *results.Search) string { return x.Strategy })...)
		out.Skipped = append(out.Skipped, first(parts, strategy, func(p *results.Exploration) []results.Skipped { return p.Skipped },
			func(x results.Skipped) string { return x.Strategy })...)
		out.Replays = append(out.Replays, first(parts, strategy, func(p *results.Exploration) []*results.Replay { return p.Replays },
			func(x *results.Replay) string { return x.Strategy })...)
	}
	return out, nil
}

// first are those of a strategy in the first part that has any: parts that share one say the same of it.
func first[T any](parts []*results.Exploration, strategy string, all func(*results.Exploration) []T, name func(T) string) (out []T) {
	for _, p := range parts {
		for _, x := range all(p) {
			if name(x) == strategy {
				out = append(out, x)
			}
		}
		if len(out) > 0 {
			break
		}
	}
	return out
}

// counted adds what a part has counted to what those before it have, whose schedules come first. What comes after a part that a
// bound has ended is left out, as by one process that the bound ends.
func counted(whole, part *results.Census) *results.Census {
	if whole == nil {
		whole = new(*part)
		whole.Part = ""
		return whole
	}
	if !whole.Complete {
		return whole
	}
	whole.Schedules += part.Schedules
	whole.Leaking += part.Leaking
	whole.Worst = max(whole.Worst, part.Worst)
	whole.Complete = whole.Complete && part.Complete
	if f := part.Shortest; f != nil && (whole.Shortest == nil || len(f.Steps) < len(whole.Shortest.Steps)) {
		whole.Shortest = f
	}
	whole.Withheld = groups.Union(whole.Withheld, part.Withheld...)
	return whole
}
