// Package results is the record of what was measured, and the summaries over rounds
// that follow from it alone. It knows nothing of how figures came about, and nothing
// of how they are shown. Package codec has its JSON form.
package results

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/collect"
)

// SchemaVersion is the version of the JSON form of a [File].
const SchemaVersion = 4

// File is one results.json.
type File struct {
	// Schema is the version of this form.
	Schema int `json:"schema"`
	// Kind is "measured" or "simulated". Simulated figures come from virtual time:
	// their latencies are modelled.
	Kind string `json:"kind" jsonschema:"enum=measured,enum=simulated"`
	// Seed of all randomness.
	Seed uint64 `json:"seed"`
	// Stores by the name that strategies know them by, e.g. "redis", "redis.2" or
	// "postgres". A store that was not there is not listed.
	Stores map[string]Store `json:"stores"`
	// Provenance is what differs from machine to machine; empty in simulations.
	Provenance Provenance `json:"provenance"`
	// Workload describes what was replayed or generated, for the header of reports.
	Workload Workload `json:"workload"`
	// Skipped lists strategies that could not take part, and those that took no part in
	// later rounds.
	Skipped []Skipped `json:"skipped"`
	// Considered are all strategies that a run thought of which named none, with what became of each; absent if the
	// command named those that it measured.
	Considered []Considered `json:"considered,omitempty"`
	// Runs holds every strategy in every round.
	Runs []Run `json:"runs"`
	// Summaries condense the runs, one per strategy and setting. They follow from
	// Runs: writers compute them and readers verify them.
	Summaries []Summary `json:"summaries"`
	// Pairing is the same in two files whose rounds were made in pairs, in random order,
	// and differs between any others; absent if rounds were made by themselves.
	Pairing string `json:"pairing,omitempty"`
	// Sources are the processes that drove the load together; absent for one alone.
	Sources []Source `json:"sources,omitempty"`
	// Sweep says which parameters the runs differ in; absent if they are all of one
	// setting.
	Sweep *Sweep `json:"sweep,omitempty"`
	// Ended says after how many rounds the measurement ended, and why; absent if their number
	// was given, and if it was interrupted.
	Ended string `json:"ended,omitempty"`
	// Interrupted is set if the measurement was ended before its last round.
	Interrupted bool `json:"interrupted"`
}

// The kinds of a file.
const (
	Measured  = "measured"
	Simulated = "simulated"
)

// Summarised returns the file's summaries, and computes them if it has none.
func (f *File) Summarised() []Summary {
	if f.Summaries != nil {
		return f.Summaries
	}
	return Summarise(f.Runs)
}

// Store is one store as it was found or started.
type Store struct {
	// Kind says where it came from; "model" is the in-process stand-in for
	// PostgreSQL.
	Kind string `json:"kind" jsonschema:"enum=url,enum=process,enum=container,enum=embedded,enum=model,enum=none"`
	// Detail is one line for people, e.g. why this kind was chosen. It holds no
	// password.
	Detail string `json:"detail,omitempty"`
	// Version of the server.
	Version string `json:"version,omitempty"`
	// Durability is what the store promises to keep when it dies.
	Durability string `json:"durability,omitempty"`
	// Class is how it is asked: "redis", "sql" or "other". If it is absent, the store's
	// name says it.
	Class string `json:"class,omitempty" jsonschema:"enum=redis,enum=sql,enum=other"`
}

// Provenance is what differs from machine to machine.
type Provenance struct {
	// Host is the machine.
	Host Host `json:"host"`
	// Time is when the measurement began.
	Time time.Time `json:"time"`
	// Commit that quotabench was built from.
	Commit string `json:"commit"`
	// Versions by component: "quotabench", "go", and each store by its name.
	Versions map[string]string `json:"versions"`
	// Command is the command line, without passwords.
	Command string `json:"command,omitempty"`
}

// Host is the machine that measured.
type Host struct {
	// Name of the host.
	Name string `json:"name"`
	// OS is the operating system, as Go names it.
	OS string `json:"os"`
	// Arch is the architecture, as Go names it.
	Arch string `json:"arch"`
	// CPUs counts logical processors.
	CPUs int `json:"cpus"`
	// Model of the processor.
	Model string `json:"model,omitempty"`
}

// Workload describes the request stream.
type Workload struct {
	// Name is its public name.
	Name string `json:"name"`
	// Notes are lines for the header of reports, e.g. how subjects were assigned.
	Notes []string `json:"notes,omitempty"`
	// Trace is set if one was replayed.
	Trace *Trace `json:"trace,omitempty"`
}

// Trace describes a replayed trace.
type Trace struct {
	// File is the base name of its file.
	File string `json:"file"`
	// Format that was detected.
	Format string `json:"format"`
	// Rows in the file.
	Rows int `json:"rows"`
	// Used rows were issued.
	Used int `json:"used"`
	// Dropped rows had no usable time or subject.
	Dropped int `json:"dropped"`
	// Damaged lists every row that could not be read whole, used or not.
	Damaged []DamagedRow `json:"damaged"`
}

// DamagedRow is a row of a trace that could not be read whole.
type DamagedRow struct {
	// Line number, from 1.
	Line int `json:"line"`
	// Reason says what is wrong with it.
	Reason string `json:"reason"`
	// Used is set if it still had a time and a subject, and was issued.
	Used bool `json:"used"`
}

// Skipped is a strategy that did not take part, and why.
type Skipped struct {
	// Strategy is its public name, or its label if it took part in earlier rounds.
	Strategy string `json:"strategy"`
	// Reason why it did not take part.
	Reason string `json:"reason"`
}

// Measure is one of a strategy's own figures, over all instances.
type Measure struct {
	// Name says what it is, e.g. "retries".
	Name string `json:"name"`
	// Unit of the value.
	Unit string `json:"unit"`
	// Kind is empty for what was counted in the round, "level" for what stood at its
	// end, and "most" for the largest value since the strategy was opened.
	Kind string `json:"kind,omitempty" jsonschema:"enum=level,enum=most"`
	// Value in the unit.
	Value int64 `json:"value"`
	// Metric is what served metrics take it for. It is not stored.
	Metric string `json:"-"`
}

// Groups puts together what may stand in one table: summaries of one setting, in
// order of appearance, over the file's own rounds. Package ranking sorts them.
func (f *File) Groups() [][]Summary {
	var settings collect.By[string, Summary]
	for _, summary := range f.Summarised() {
		settings.Add(summary.setting, summary)
	}
	var out [][]Summary
	for _, k := range settings.Keys {
		out = append(out, settings.Of[k])
	}
	return out
}

// StoreNames returns the names of the stores in the order of reports: Redis ones
// first, PostgreSQL ones last.
func (f *File) StoreNames() []string {
	return slices.SortedFunc(maps.Keys(f.Stores), func(a, b string) int {
		return cmp.Or(slices.Index(classes, f.Class(a))-slices.Index(classes, f.Class(b)), strings.Compare(a, b))
	})
}

var classes = []string{codes.ClassRedis, codes.ClassOther, codes.ClassSQL}

// Class is how the store of that name is asked. Records of earlier versions do not say it:
// what was neither Redis nor PostgreSQL was of another class.
func (f *File) Class(name string) string {
	kind, _, _ := strings.Cut(name, ".")
	named := map[string]string{"redis": codes.ClassRedis, "postgres": codes.ClassSQL}[kind]
	return cmp.Or(f.Stores[name].Class, named, codes.ClassOther)
}
