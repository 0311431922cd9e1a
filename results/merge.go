package results

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/internal/groups"
)

// Named is a file with its name, for [Merge].
type Named struct {
	// Name is how messages call it, e.g. its path.
	Name string
	File File
}

// Source is a file that was merged with others.
type Source struct {
	// File is its name, as it was given.
	File string `json:"file"`
	// Seed of its randomness.
	Seed uint64 `json:"seed"`
	// Provenance of its runs.
	Provenance Provenance `json:"provenance"`
	// Runs that it held.
	Runs int `json:"runs"`
	// Later is how much was added to the numbers of its rounds.
	Later int `json:"rounds_later,omitempty"`
}

// Merge puts the records of several processes together, without loss.
//
// Shards of one load (see [Params].Shard) become one run per strategy and round:
// histograms, counts, leak, false rejects and drift are added up, since no two shards
// have a subject in common. All shards have to be there, once. Generators of one load
// become one run as well, which has no verdict before their histories are judged.
//
// Other runs of the same strategy and setting are further rounds, whose numbers follow
// those of the files before, and need the same machine, since their timings become one
// figure. Different strategies and settings stand side by side.
//
// Files that differ in kind or workload, or in a store that both have, are refused, and so is the same run
// twice. An error is one line that names the files.
func Merge(files []Named) (File, error) {
	if len(files) == 0 || len(files) < 2 && !files[0].File.ofGenerator() {
		return File{}, errors.New("merging takes two files or more")
	}
	first := files[0].File
	out := File{
		Schema: SchemaVersion, Kind: first.Kind, Seed: first.Seed, Stores: map[string]Store{}, Provenance: first.Provenance,
		Workload: first.Workload,
	}
	out.Ended, out.Workload.Notes = "", slices.Clone(out.Workload.Notes)
	var m merger
	for i := range files {
		f := &files[i].File
		for j := range i {
			if err := twice(&files[j], &files[i]); err != nil {
				return File{}, err
			}
		}
		if err := alike(&Named{files[0].Name, out}, &files[i]); err != nil {
			return File{}, err
		}
		maps.Copy(out.Stores, f.Stores)
		out.Workload.Notes = groups.Union(out.Workload.Notes, f.Workload.Notes...)
		out.Skipped = groups.Union(out.Skipped, f.Skipped...)
		out.Interrupted = out.Interrupted || f.Interrupted
		later, err := m.add(&files[i])
		if err != nil {
			return File{}, err
		}
		if len(f.Merged) > 0 {
			out.Merged = append(out.Merged, f.Merged...)
			continue
		}
		out.Merged = append(out.Merged, Source{File: files[i].Name, Seed: f.Seed, Provenance: f.Provenance, Runs: len(f.Runs), Later: later})
	}
	runs, err := m.runs()
	if err != nil {
		return File{}, err
	}
	out.Runs, out.Summaries = runs, Summarise(runs)
	return out, nil
}

// twice reports that two files are of the same measurement.
func twice(a, b *Named) error {
	pa, pb := &a.File.Provenance, &b.File.Provenance
	if !pa.Time.IsZero() && pa.Time.Equal(pb.Time) && pa.Host == pb.Host && a.File.Seed == b.File.Seed && sameShards(a, b) {
		return fmt.Errorf("%s and %s are of the same measurement, which would count twice", a.Name, b.Name)
	}
	return nil
}

func sameShards(a, b *Named) bool {
	return len(a.File.Runs) > 0 && len(b.File.Runs) > 0 && a.File.Runs[0].Params.part() == b.File.Runs[0].Params.part()
}

// alike reports what keeps two files from standing in one.
func alike(a, b *Named) error {
	x, y := &a.File, &b.File
	switch {
	case x.Kind != y.Kind:
		return fmt.Errorf("%s is %s, and %s is %s: merge them apart", a.Name, x.Kind, b.Name, y.Kind)
	case x.Workload.Name != y.Workload.Name:
		return fmt.Errorf("%s has the workload %s, and %s has %s: merge them apart", a.Name, format.Plain(x.Workload.Name), b.Name,
			format.Plain(y.Workload.Name))
	case (x.Workload.Trace == nil) != (y.Workload.Trace == nil) || x.Workload.Trace != nil &&
		(x.Workload.Trace.File != y.Workload.Trace.File || x.Workload.Trace.Rows != y.Workload.Trace.Rows):
		return fmt.Errorf("%s and %s replay different traces: merge them apart", a.Name, b.Name)
	}
	for _, name := range x.StoreNames() {
		p := x.Stores[name]
		q, ok := y.Stores[name]
		if ok && (p.Kind != q.Kind || p.Version != q.Version || p.Durability != q.Durability) {
			return fmt.Errorf("%s has %s %s, and %s has %s: merge them apart", a.Name, format.Plain(name), described(p), b.Name, described(q))
		}
	}
	return nil
}

func described(s Store) string {
	return format.Plain(format.Join(" ", s.Kind, s.Version, s.Durability))
}

// merger collects runs by strategy and setting, shards aside.
type merger struct{ groups.By[string, numbered] }

// numbered is a run with the file that it is from.
type numbered struct {
	Run
	from *Named
}

// span is when the runs of the file were measured, at least. Simulations have none.
func (n *Named) span() (began, ended time.Time) {
	began = n.File.Provenance.Time
	var took int64
	for i := range n.File.Runs {
		r := &n.File.Runs[i]
		took += r.ElapsedNS
		if r.Paced != nil {
			took += r.Paced.ElapsedNS
		}
	}
	return began, began.Add(time.Duration(took))
}

// add takes the runs of a file, and returns by how much the numbers of its rounds
// grew. Shards keep theirs.
func (m *merger) add(n *Named) (later int, err error) {
	for i := range n.File.Runs {
		r := &n.File.Runs[i]
		for _, x := range m.Of[keyOfWhole(r)] {
			if (x.Params.part() == "") != (r.Params.part() == "") {
				shard, whole := n.Name, x.from.Name
				if r.Params.part() == "" {
					shard, whole = whole, shard
				}
				return 0, fmt.Errorf("%s of %s is a shard, and of %s it is not: they share no load", x.Params.Label, shard, whole)
			}
			if r.Params.part() == "" {
				later = max(later, x.Repetition)
			}
		}
	}
	for i := range n.File.Runs {
		r := n.File.Runs[i]
		key := keyOfWhole(&r)
		if r.Params.part() == "" {
			if err := further(m.Of[key], n, &r); err != nil {
				return 0, err
			}
			r.Repetition += later
			if r.Paced != nil {
				p := *r.Paced
				p.Repetition += later
				r.Paced = &p
			}
		}
		m.Add(key, numbered{r, n})
	}
	return later, nil
}

// keyOfWhole is the [Run.Key] without the part that a run is.
func keyOfWhole(r *Run) string {
	whole := *r
	whole.Params.Shard, whole.Params.Generator = "", ""
	return whole.Key()
}

// further refuses a round that was measured on another machine than those before, and a simulated run that is
// there already: of one seed it is the same.
func further(before []numbered, n *Named, r *Run) error {
	host := n.File.Provenance.Host
	for i := range slices.Backward(before) {
		x := &before[i]
		switch h := x.from.File.Provenance.Host; {
		case n.File.Kind == Measured && h != host:
			return fmt.Errorf("%s was measured on %s in %s and on %s in %s: "+
				"timings of two machines are not one figure; merge those of each machine apart", r.Params.Label,
				format.Plain(cmp.Or(h.Name, "an unnamed host")), x.from.Name, format.Plain(cmp.Or(host.Name, "an unnamed host")), n.Name)
		case n.File.Kind == Simulated && x.from.Name != n.Name && x.Params.Stream == r.Params.Stream && x.Trace == r.Trace:
			return fmt.Errorf("%s and %s hold the same simulation of %s, which would count twice: give another seed", x.from.Name, n.Name,
				r.Params.Label)
		}
	}
	return nil
}

// runs are those of the merged file, shards joined, round by round.
func (m *merger) runs() ([]Run, error) {
	out := []Run{}
	for _, key := range m.Keys {
		all := m.Of[key]
		if all[0].Params.part() == "" {
			for i := range all {
				out = append(out, all[i].Run)
			}
			continue
		}
		joined, err := joined(all)
		if err != nil {
			return nil, err
		}
		out = append(out, joined...)
	}
	slices.SortStableFunc(out, func(a, b Run) int { return cmp.Compare(a.Repetition, b.Repetition) })
	return out, nil
}

// joined are the rounds of a load that was shared.
func joined(all []numbered) (out []Run, err error) {
	var by groups.By[int, numbered]
	for _, r := range all {
		by.Add(r.Repetition, r)
	}
	for _, n := range by.Keys {
		parts, label := by.Of[n], all[0].Params.Label
		seen := map[string]string{}
		for i := range parts {
			p := &parts[i]
			if other, ok := seen[p.Params.part()]; ok {
				return nil, fmt.Errorf("round %d of %s is part %s in %s and in %s: "+
					"their subjects are the same, and what leaked in both cannot be told",
					n, label, format.Plain(p.Params.part()), other, p.from.Name)
			}
			if p.Params.Generator != "" && p.Params.RunID != parts[0].Params.RunID {
				return nil, fmt.Errorf("%s and %s are of different runs, %s and %s: merge the generators of one run",
					parts[0].from.Name, p.from.Name, format.Plain(parts[0].Params.RunID), format.Plain(p.Params.RunID))
			}
			seen[p.Params.part()] = p.from.Name
			_, of, _ := strings.Cut(p.Params.Shard, "/")
			if want := fmt.Sprint(len(parts)); of != want && p.Params.Shard != "" {
				return nil, fmt.Errorf("round %d of %s is shard %s in %s, and there are %s: give all shards of one load", n, label,
					format.Plain(p.Params.Shard), p.from.Name, format.Plural(int64(len(parts)), "shard", "shards"))
			}
		}
		if err := atOnce(parts); err != nil {
			return nil, err
		}
		runs := make([]*Run, len(parts))
		for i := range parts {
			runs[i] = &parts[i].Run
		}
		joining := func() (Run, error) { return join(runs) }
		if runs[0].Params.Generator != "" {
			joining = func() (Run, error) { return joinGenerators(parts) }
		}
		whole, err := joining()
		if err != nil {
			return nil, fmt.Errorf("round %d of %s: %w", n, label, err)
		}
		out = append(out, whole)
	}
	return out, nil
}

// atOnce refuses shards that were not measured at the same time: apart, each has the servers for itself.
func atOnce(parts []numbered) error {
	ends, begins := parts[0].from, parts[0].from // the first that ended, and the last that began
	for _, p := range parts {
		began, ended := p.from.span()
		if _, first := ends.span(); ended.Before(first) {
			ends = p.from
		}
		if last, _ := begins.span(); began.After(last) {
			begins = p.from
		}
	}
	from, to := ends.span()
	began, ended := begins.span()
	if parts[0].Params.Generator != "" || ends.File.Kind != Measured || from.IsZero() || began.IsZero() || began.Before(to) {
		return nil
	}
	text := func(t time.Time) string { return t.UTC().Format(time.DateTime) }
	return fmt.Errorf("the shards of %s were not measured at the same time: %s from %s to %s UTC, %s from %s to %s: start all shards together",
		parts[0].Params.Label, ends.Name, text(from), text(to), begins.Name, text(began), text(ended))
}
