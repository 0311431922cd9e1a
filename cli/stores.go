package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	_ "github.com/quotabench/quotabench/stores/all" // what the flags can name
	"github.com/quotabench/quotabench/workloads"
)

// storeSettings are a flag for each kind of store, and the one for all others.
func (s *settings) storeSettings() []setting {
	var table, images []setting
	var passwords []string
	for _, d := range stores.Drivers() {
		from, image := d.Default, ""
		s.from[d.Name], s.images[d.Name] = &from, &image
		table = append(table, setting{name: d.Name, value: &text{p: &from}, secret: true, passwordFrom: d.PasswordEnv,
			complete: completeStore(d), computed: d.Default == "", doc: d.Title + ": " + d.Forms() + ", or as " + storeVariable(d.Name) + " says"})
		if d.PasswordEnv != "" {
			passwords = append(passwords, d.PasswordEnv)
		}
		if d.Image != "" {
			images = append(images, setting{name: d.Name + "-image", value: &text{p: &image}, computed: true, complete: cobra.NoFileCompletions,
				doc: "`image` of a " + d.Title + " container (default: " + d.Image + ")"})
		}
	}
	table = append(table, setting{name: "store", value: &list{p: &s.named}, secret: true, passwordFrom: strings.Join(passwords, " or "),
		complete: completeNamedStore, doc: "a further store, e.g. `redis.2=process`: its kind and a name, then what the kind's flag takes; may be repeated (default: those that the strategies need are opened as the main one of their kind is)"})
	table = append(table, images...)
	for i := range table {
		table[i].store = true
	}
	return table
}

// storeSpecs are the stores that the settings ask for.
func (s *settings) storeSpecs() ([]stores.Spec, error) {
	if err := s.fromEnvironment(); err != nil {
		return nil, err
	}
	named, err := stores.ParseSpecs(s.named)
	if err != nil {
		return nil, s.wrong("store", err)
	}
	var specs []stores.Spec
	for _, d := range stores.Drivers() {
		again := slices.ContainsFunc(named, func(x stores.Spec) bool { return x.Name == d.Name })
		from := *s.from[d.Name]
		switch {
		case again && s.given(d.Name):
			return nil, s.wrong("store", fmt.Errorf("%s is given by --%s already", d.Name, d.Name))
		case from == "" && s.given(d.Name):
			return nil, fail(ExitUsage, d.Refuse(""))
		case from != "" && !again:
			// A configuration file may hold all defaults.
			specs = append(specs, stores.Spec{Name: d.Name, From: from, Optional: !s.given(d.Name) || from == d.Default})
		}
	}
	specs = append(specs, named...)
	for i := range specs {
		d, err := stores.DriverOf(specs[i].Name)
		if err != nil {
			return nil, s.wrong("store", err)
		}
		specs[i].Options.Image = *s.images[d.Name]
	}
	return specs, nil
}

// openedStores are the stores of one invocation.
type openedStores struct{ set *stores.Set }

// openStores opens the stores that were asked for and, as far as they can be had,
// those that are needed.
func (s *settings) openStores(ctx context.Context, needed []string) (*openedStores, error) {
	specs, err := s.storeSpecs()
	if err != nil {
		return nil, err
	}
	set, err := stores.OpenNeeded(ctx, specs, needed)
	return &openedStores{set}, err
}

// infos describes all stores by name, those that are absent too.
func (s *openedStores) infos() map[string]stores.Info {
	all := map[string]stores.Info{}
	for _, name := range s.set.Names() {
		st, _ := s.set.Get(name)
		all[name] = st.Info()
	}
	for _, name := range s.set.AbsentNames() {
		all[name], _ = s.set.Absent(name)
	}
	return all
}

// announce says what the run will use, before it takes its time.
func (s *openedStores) announce(w io.Writer) {
	infos := s.infos()
	wide := 0
	for name := range infos {
		wide = max(wide, len(storeTitle(name)))
	}
	for _, name := range slices.Sorted(maps.Keys(infos)) {
		fmt.Fprintf(w, "%-*s %s\n", wide+1, storeTitle(name)+":", storeLine(infos[name]))
	}
}

// removeDead removes what runs left in servers of others that ended without doing so,
// and says so.
func (s *openedStores) removeDead(ctx context.Context, w io.Writer) {
	for _, name := range s.set.Names() {
		st, _ := s.set.Get(name)
		removeDead(ctx, w, name, st)
	}
}

// removeDead is that of one store. That it fails is no reason not to run.
func removeDead(ctx context.Context, w io.Writer, name string, st stores.Store) {
	switch did, err := stores.RemoveDead(ctx, st); {
	case err != nil && ctx.Err() == nil:
		fmt.Fprintf(w, "warning: %s: what earlier runs left could not be removed: %s\n", name, format.OneLine(err.Error()))
	case did != "":
		fmt.Fprintf(w, "%s: %s\n", name, did)
	}
}

// storeTitle is the name of a store for people.
func storeTitle(name string) string {
	if d, err := stores.DriverOf(name); err == nil && d.Name == name {
		return d.Title
	}
	return name
}

func storeLine(i stores.Info) string {
	parts := []string{string(i.Kind)}
	if i.Version != "" {
		parts[0] += " " + i.Version
	}
	for _, p := range []string{i.Durability, i.Detail} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, "; ")
}

// file is the record of a measurement before its first run.
func (s *openedStores) file(ctx context.Context, cfg measure.Config, skipped map[string]string) results.File {
	infos := s.infos()
	f := results.File{
		Schema: results.SchemaVersion, Kind: results.Measured, Seed: cfg.Seed,
		Stores:     map[string]results.Store{},
		Provenance: *provenance(ctx),
		Workload:   results.Workload{Name: cfg.Workload.Name},
		Skipped:    []results.Skipped{}, Runs: []results.Run{},
	}
	for name, i := range infos {
		if i.Kind == stores.KindNone {
			continue // what was skipped for that says so
		}
		f.Stores[name] = storeRecord(i)
		if i.Version != "" {
			f.Provenance.Versions[name] = i.Version
		}
	}
	for _, name := range slices.Sorted(maps.Keys(skipped)) {
		f.Skipped = append(f.Skipped, results.Skipped{Strategy: name, Reason: skipped[name]})
	}
	return f
}

func storeRecord(i stores.Info) results.Store {
	return results.Store{Kind: string(i.Kind), Detail: i.Detail, Version: i.Version, Durability: i.Durability}
}

// workloadRecord is the part of the record that describes the request stream.
func workloadRecord(name string, info workloads.Info, notes []string) results.Workload {
	w := results.Workload{Name: name, Notes: append(slices.Clone(info.Notes), notes...)}
	if t := info.Trace; t != nil {
		w.Trace = &results.Trace{File: t.File, Format: t.Format, Rows: t.Rows, Used: t.Used, Dropped: t.Dropped, Damaged: []results.DamagedRow{}}
		for _, d := range t.Damaged {
			w.Trace.Damaged = append(w.Trace.Damaged, results.DamagedRow(d))
		}
	}
	return w
}
