package compare

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/strategies"
)

// pair is one strategy in one setting on both sides.
type pair struct {
	label, setting string
	baseline       bool // it is there to be compared with
	base, head     []*results.Run
	kept           map[*results.Run]bool // those behind timings that count
}

// files compares two records of runs.
func (c *Comparison) files(b, h *Side, options *Options) error {
	base := b.File
	head := h.File
	if base.Seed != head.Seed {
		return fmt.Errorf("%s has seed %d and %s has seed %d: their requests differ", c.Base, base.Seed, c.Head, head.Seed)
	}
	for _, name := range slices.Sorted(maps.Keys(head.Stores)) {
		store, ok := base.Stores[name]
		if h := head.Stores[name]; ok &&
			(store.Kind != h.Kind || store.Version != h.Version || store.Durability != h.Durability) {
			return fmt.Errorf("the store %s differs: %s in %s, %s in %s", name, storeText(store), c.Base, storeText(h), c.Head)
		}
	}
	c.interrupted(base.Interrupted, head.Interrupted, "was interrupted before its last round")
	measured := head.Kind == results.Measured
	if host, h := base.Provenance.Host, head.Provenance.Host; measured && host != h {
		c.TimingsRefused = fmt.Sprintf("%s was measured on %s, %s on %s: only exact figures are compared", c.Base,
			hostText(host), c.Head,
			hostText(h))
	}
	pairs := c.match(base, head)
	c.Pairs = len(pairs)
	var samples []*sample
	for _, pair := range pairs {
		c.validity(pair)
		if !measured && options.Paired { // each round is the same simulation
			samples = append(samples, processor(pair)...)
			pair.base = pair.base[:1]
			pair.head = pair.head[:1]
		}
		c.exact(pair, options, measured)
		switch {
		case measured && c.TimingsRefused == "":
			samples = append(samples, c.samples(pair, options)...)
		case measured:
			for _, timing := range Timings() {
				if _, gated := options.Tolerances[timing]; gated {
					c.missing(pair, timing, c.TimingsRefused, options)
				}
			}
		}
		c.staleness(pair, b.Series, h.Series, options)
		c.gates(pair, options)
	}
	c.judge(samples, options)
	return nil
}

func storeText(store results.Store) string {
	return format.Join(", ", store.Kind+" "+store.Version, store.Durability)
}

func hostText(host results.Host) string {
	return fmt.Sprintf("%s (%s/%s, %d CPUs, %s)", cmp.Or(host.Name, "a host without a name"), host.OS, host.Arch,
		host.CPUs,
		cmp.Or(host.Model, "unknown model"))
}

// match finds the runs that both sides repeat, in the order of the head. What cannot
// be compared is noted.
func (c *Comparison) match(base, head *results.File) (pairs []*pair) {
	kept := map[*results.Run]bool{}
	timed(kept, base.Runs)
	timed(kept, head.Runs)
	b := grouped(base)
	h := grouped(head)
	settings := map[string]int{}
	for _, key := range h.Keys {
		settings[h.Of[key][0].Params.Label]++
	}
	for _, key := range h.Keys {
		first := h.Of[key][0]
		p := &pair{
			label: first.Params.Label, baseline: first.Form == string(strategies.Baseline),
			base: b.Of[key], head: h.Of[key], kept: kept,
		}
		if settings[p.label] > 1 {
			p.setting = settingText(first)
		}
		switch reason := apart(p.base, p.head); {
		case p.base == nil:
			c.unmatched(p.label, "%s", alone(first, base, c.Base))
		case reason != "":
			c.unmatched(p.label, "%s", reason)
		default:
			pairs = append(pairs, p)
		}
	}
	for _, key := range b.Keys {
		first := b.Of[key][0]
		if h.Of[key] == nil && !slices.ContainsFunc(c.Unmatched, func(unmatched Unmatched) bool {
			return unmatched.Strategy == first.Params.Label
		}) {
			c.unmatched(first.Params.Label, "%s", alone(first, head, c.Head))
		}
	}
	return pairs
}

// timed notes which runs, open loops at the common rate among them, are behind timings that
// count.
func timed(kept map[*results.Run]bool, runs []results.Run) {
	of := map[string]*results.Summary{}
	all := results.Summarise(runs)
	for i := range all {
		of[all[i].Key] = &all[i]
	}
	for i := range runs {
		run := &runs[i]
		summary := of[run.Key()]
		kept[run] = summary.Keeps(run.Repetition)
		if run.Paced != nil && summary.Paced != nil {
			kept[run.Paced] = summary.Paced.Keeps(run.Repetition)
		}
	}
}

// grouped are the runs by what they repeat.
func grouped(file *results.File) (out collect.By[string, *results.Run]) {
	for i := range file.Runs {
		out.Add(file.Runs[i].Key(), &file.Runs[i])
	}
	return out
}

// alone says why a run has no counterpart in the other file.
func alone(run *results.Run, other *results.File, name string) string {
	for i := range other.Runs {
		if x := &other.Runs[i]; x.Params.Label == run.Params.Label {
			return fmt.Sprintf("asked for otherwise in %s: %s", name, differences(run, x))
		}
	}
	for _, skipped := range other.Skipped {
		if skipped.Strategy == run.Strategy || skipped.Strategy == run.Params.Label {
			return fmt.Sprintf("took no part in %s: %s", name, skipped.Reason)
		}
	}
	return "is not in " + name
}

// differences names the parameters in which two runs of a strategy differ.
func differences(r, other *results.Run) string {
	var out []string
	here := parameters(r)
	there := parameters(other)
	all := maps.Clone(there)
	maps.Copy(all, here)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if here[name] != there[name] {
			out = append(out, fmt.Sprintf("%s %s and not %s", strings.ReplaceAll(name, "_", " "), cmp.Or(there[name], "unset"),
				cmp.Or(here[name], "unset")))
		}
	}
	if len(out) == 0 {
		return "nothing that is recorded"
	}
	return strings.Join(out, ", ")
}

// derived parameters follow from the others and from what a run came to.
var derived = []string{"label", "subjects", "stream"}

// parameters are all that a run was asked to do, by the names of the record, as texts.
func parameters(run *results.Run) map[string]string {
	out := map[string]string{"policy": run.Policy, "workload name": run.Workload}
	raw := map[string]json.RawMessage{}
	data, err := json.Marshal(&run.Params)
	if err == nil {
		err = json.Unmarshal(data, &raw)
	}
	if err != nil { // a rate that is no number, which no file can hold
		return out
	}
	for name, message := range raw {
		out[name] = string(message)
	}
	for _, name := range derived {
		delete(out, name)
	}
	return out
}

// apart says why runs with one key cannot be compared all the same: by bounds that the
// key leaves out, and by the requests themselves. It is empty if they can.
func apart(base, head []*results.Run) string {
	if len(base) == 0 || len(head) == 0 {
		return ""
	}
	if !maps.Equal(parameters(base[0]), parameters(head[0])) {
		return "asked for otherwise: " + differences(head[0], base[0])
	}
	for _, run := range head {
		for _, b := range base {
			if b.Repetition == run.Repetition && b.Params.Stream != run.Params.Stream {
				return fmt.Sprintf("its requests of round %d differ (stream %s and not %s): the workload was changed",
					run.Repetition, b.Params.Stream,
					run.Params.Stream)
			}
		}
	}
	return ""
}

// settingText tells settings of one strategy apart.
func settingText(run *results.Run) string {
	params := &run.Params
	text := fmt.Sprintf("%s, %s, limit %d, %s loop", run.Policy, run.Workload, params.Limit, params.Loop)
	if params.RatePerS > 0 {
		text += fmt.Sprintf(" at %g/s", params.RatePerS)
	}
	return fmt.Sprintf("%s, %d workers, %d instances", text, params.Workers, params.Instances)
}

// validity adds a row for each side of which a round is invalid: it passes no gate.
func (c *Comparison) validity(p *pair) {
	for _, side := range []struct {
		name string
		runs []*results.Run
	}{{c.Base, p.base}, {c.Head, p.head}} {
		for _, run := range side.runs {
			err := run.Err()
			if err == nil && run.Partial && c.Kind == results.Simulated {
				err = errors.New("it was ended early")
			}
			if err != nil {
				c.invalid(p, "round %d of %s: %v", run.Repetition, side.name, err)
				break
			}
		}
	}
}

// valid are the runs whose correctness figures count.
func valid(runs []*results.Run) []*results.Run {
	return slices.DeleteFunc(slices.Clone(runs), func(run *results.Run) bool { return !run.Audit.Valid })
}
