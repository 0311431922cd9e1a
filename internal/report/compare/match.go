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
)

// pair is one strategy in one setting on both sides.
type pair struct {
	label, setting string
	baseline       bool // it is there to be compared with
	base, head     []*results.Run
	kept           map[*results.Run]bool // those behind timings that count
}

// files compares two records of runs.
func (c *Comparison) files(b, h *Side, o *Options) error {
	base := b.File
	head := h.File
	if base.Seed != head.Seed {
		return fmt.Errorf("%s has seed %d and %s has seed %d: their requests differ", c.Base, base.Seed, c.Head, head.Seed)
	}
	for _, name := range slices.Sorted(maps.Keys(head.Stores)) {
		b, ok := base.Stores[name]
		if h := head.Stores[name]; ok && (b.Kind != h.Kind || b.Version != h.Version || b.Durability != h.Durability) {
			return fmt.Errorf("the store %s differs: %s in %s, %s in %s", name, storeText(b), c.Base, storeText(h), c.Head)
		}
	}
	c.interrupted(base.Interrupted, head.Interrupted, "was interrupted before its last round")
	measured := head.Kind == results.Measured
	if b, h := base.Provenance.Host, head.Provenance.Host; measured && b != h {
		c.TimingsRefused = fmt.Sprintf("%s was measured on %s, %s on %s: only exact figures are compared", c.Base, hostText(b), c.Head,
			hostText(h))
	}
	pairs := c.match(base, head)
	c.Pairs = len(pairs)
	var samples []*sample
	for _, p := range pairs {
		c.validity(p)
		if !measured && o.Paired { // each round is the same simulation
			samples = append(samples, processor(p)...)
			p.base = p.base[:1]
			p.head = p.head[:1]
		}
		c.exact(p, o, measured)
		if measured && c.TimingsRefused == "" {
			samples = append(samples, c.samples(p, o)...)
		}
		c.staleness(p, b.Series, h.Series, o)
		c.gates(p, o)
	}
	c.judge(samples, o)
	return nil
}

func storeText(s results.Store) string { return format.Join(", ", s.Kind+" "+s.Version, s.Durability) }

func hostText(h results.Host) string {
	return fmt.Sprintf("%s (%s/%s, %d CPUs, %s)", cmp.Or(h.Name, "a host without a name"), h.OS, h.Arch, h.CPUs,
		cmp.Or(h.Model, "unknown model"))
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
		p := &pair{label: first.Params.Label, baseline: first.Form == results.FormBaseline, base: b.Of[key], head: h.Of[key], kept: kept}
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
		if h.Of[key] == nil && !slices.ContainsFunc(c.Unmatched, func(u Unmatched) bool { return u.Strategy == first.Params.Label }) {
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
		r := &runs[i]
		s := of[r.Key()]
		kept[r] = s.Keeps(r.Repetition)
		if r.Paced != nil && s.Paced != nil {
			kept[r.Paced] = s.Paced.Keeps(r.Repetition)
		}
	}
}

// grouped are the runs by what they repeat.
func grouped(f *results.File) (out collect.By[string, *results.Run]) {
	for i := range f.Runs {
		out.Add(f.Runs[i].Key(), &f.Runs[i])
	}
	return out
}

// alone says why a run has no counterpart in the other file.
func alone(r *results.Run, other *results.File, name string) string {
	for i := range other.Runs {
		if x := &other.Runs[i]; x.Params.Label == r.Params.Label {
			return fmt.Sprintf("asked for otherwise in %s: %s", name, differences(r, x))
		}
	}
	for _, s := range other.Skipped {
		if s.Strategy == r.Strategy || s.Strategy == r.Params.Label {
			return fmt.Sprintf("took no part in %s: %s", name, s.Reason)
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
func parameters(r *results.Run) map[string]string {
	out := map[string]string{"policy": r.Policy, "workload name": r.Workload}
	raw := map[string]json.RawMessage{}
	b, err := json.Marshal(&r.Params)
	if err == nil {
		err = json.Unmarshal(b, &raw)
	}
	if err != nil { // a rate that is no number, which no file can hold
		return out
	}
	for name, v := range raw {
		out[name] = string(v)
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
	for _, h := range head {
		for _, b := range base {
			if b.Repetition == h.Repetition && b.Params.Stream != h.Params.Stream {
				return fmt.Sprintf("its requests of round %d differ (stream %s and not %s): the workload was changed", h.Repetition, b.Params.Stream,
					h.Params.Stream)
			}
		}
	}
	return ""
}

// settingText tells settings of one strategy apart.
func settingText(r *results.Run) string {
	p := &r.Params
	text := fmt.Sprintf("%s, %s, limit %d, %s loop", r.Policy, r.Workload, p.Limit, p.Loop)
	if p.RatePerS > 0 {
		text += fmt.Sprintf(" at %g/s", p.RatePerS)
	}
	return fmt.Sprintf("%s, %d workers, %d instances", text, p.Workers, p.Instances)
}

// validity adds a row for each side of which a round is invalid: it passes no gate.
func (c *Comparison) validity(p *pair) {
	for _, side := range []struct {
		name string
		runs []*results.Run
	}{{c.Base, p.base}, {c.Head, p.head}} {
		for _, r := range side.runs {
			err := r.Err()
			if err == nil && r.Partial && c.Kind == results.Simulated {
				err = errors.New("it was ended early")
			}
			if err != nil {
				c.invalid(p, "round %d of %s: %v", r.Repetition, side.name, err)
				break
			}
		}
	}
}

// valid are the runs whose correctness figures count.
func valid(runs []*results.Run) []*results.Run {
	return slices.DeleteFunc(slices.Clone(runs), func(r *results.Run) bool { return !r.Audit.Valid })
}
