// Package faults plans a matrix of strategies and faults: a fault is the text of settings of a measured run, and a
// cell is what a strategy makes of it.
package faults

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/yamlfile"
	"github.com/quotabench/quotabench/internal/report/claims"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// List is a file of faults.
type List struct {
	// Settings of every run, those of a quick matrix, and those of a full one.
	Settings string `yaml:"settings"`
	Quick    string `yaml:"quick"`
	Full     string `yaml:"full"`
	// Longer is the duration with which strategies are measured once more that a run leaves undecided. Both runs are then
	// judged together: what is declared holds if a round could have broken it, and none has.
	Longer string `yaml:"longer"`
	// Policies are tried in their order: a strategy has the first that it serves.
	Policies []string `yaml:"policies"`
	// Faults in the order of reports.
	Faults []Fault `yaml:"faults"`
}

// Fault is something that goes wrong in a run.
type Fault struct {
	// Name of the fault, e.g. "redis-away", and what happens in a sentence.
	Name string `yaml:"name"`
	Says string `yaml:"says"`
	// Needs is a store, such as "redis": strategies without it take no part. It is empty if the fault is of callers or
	// limits. In the settings, {store} stands for the first store of its kind that a strategy needs, e.g. "redis.durable".
	// Without {store}, a strategy takes part that needs the store of this very name.
	Needs string `yaml:"needs"`
	// Settings of a run that make it happen, e.g. "--trouble {store}:away@0.2-0.4". They win over those of every run.
	Settings string `yaml:"settings"`
	// Policies are those that it is tried with if those of the list would hide what it does.
	Policies []string `yaml:"policies"`
	// Crosses says that a window ends during the run, which a strategy without a reset takes no part in.
	Crosses bool `yaml:"crosses"`
}

//go:embed faults.yaml
var builtin []byte

// Builtin are the faults of this program.
func Builtin() (*List, error) { return Parse("faults.yaml", builtin) }

// Parse reads a list of faults. An error names the path, and the line if the text is no YAML of this form.
func Parse(path string, data []byte) (*List, error) {
	list := new(List)
	if err := yamlfile.Decode(path, data, list); err != nil {
		return nil, err
	}
	if len(list.Faults) == 0 || len(list.Policies) == 0 {
		return nil, fmt.Errorf("%s: give at least one of faults and one of policies", path)
	}
	if longer, err := time.ParseDuration(list.Longer); list.Longer != "" && (err != nil || longer <= 0) {
		return nil, fmt.Errorf("%s: longer: %q is no duration: write one such as 5s", path, list.Longer)
	}
	names := list.Names()
	for i, fault := range list.Faults {
		if err := format.CheckFileName(fault.Name); fault.Name != "" && err != nil {
			return nil, fmt.Errorf("%s: fault %d: %w", path, i+1, err)
		}
		if fault.Name == "" || fault.Says == "" || slices.Index(names, fault.Name) < i {
			return nil, fmt.Errorf("%s: fault %d (%q) needs a name of its own and a sentence: write name: and says: with it",
				path, i+1, fault.Name)
		}
	}
	return list, nil
}

// Names of the faults.
func (l *List) Names() (out []string) {
	for _, fault := range l.Faults {
		out = append(out, fault.Name)
	}
	return out
}

// Keep removes all faults but those that are named. Nothing named is everything.
func (l *List) Keep(names []string) error {
	for _, n := range names {
		if known := l.Names(); !slices.Contains(known, n) {
			return quota.Unknown("fault", n, known, "")
		}
	}
	l.Faults = slices.DeleteFunc(l.Faults, func(fault Fault) bool {
		return len(names) > 0 && !slices.Contains(names, fault.Name)
	})
	return nil
}

// Files are the cells of the strategies, a file for each fault. Strategies with the same settings share a run.
func (l *List) Files(chosen []strategies.Selection) ([]*claims.File, error) {
	var out []*claims.File
	for _, fault := range l.Faults {
		row, err := l.row(fault)
		if err != nil {
			return nil, err
		}
		for _, sel := range chosen {
			store, meets := fault.meets(sel)
			if meets {
				row.file.Claims = append(row.file.Claims, row.cell(sel, store))
			}
		}
		if len(row.file.Claims) > 0 {
			out = append(out, row.file)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("none of the faults is of a store that these strategies need: name others")
	}
	return out, nil
}

// row is the cells of one fault.
type row struct {
	list  *List
	fault Fault
	// texts are its policies as they are written, and policies are what they say.
	texts    []string
	policies []quota.Policy
	file     *claims.File
	// names are those of the runs, by their settings.
	names map[string]string
}

// row is that of a fault, without cells.
func (l *List) row(fault Fault) (*row, error) {
	texts := l.Policies
	if len(fault.Policies) > 0 {
		texts = fault.Policies
	}
	policies := make([]quota.Policy, len(texts))
	for i, text := range texts {
		policy, err := quota.LookupPolicy(text)
		if err != nil {
			return nil, err
		}
		policies[i] = policy
	}
	file := &claims.File{Record: fault.Name, Title: fault.Says, Longer: l.Longer, Runs: map[string]claims.Run{}}
	return &row{list: l, fault: fault, texts: texts, policies: policies, file: file, names: map[string]string{}}, nil
}

// cell is that of a strategy, which is added to a run.
func (r *row) cell(sel strategies.Selection, store string) claims.Claim {
	label := sel.String()
	claim := claims.Claim{ID: label, Says: r.fault.Says}
	changes := r.fault.changesLimit()
	bucket := false // it serves one, whose size cannot change
	served := slices.IndexFunc(r.policies, func(policy quota.Policy) bool {
		serves := sel.ServesPolicy(&policy) == nil
		sized := changes && policy.Window.Kind == quota.Bucket
		bucket = bucket || serves && sized
		return serves && !sized
	})
	switch {
	case served < 0 && bucket:
		claim.Unmeasurable = "the size of a bucket cannot change"
		return claim
	case served < 0:
		claim.Unmeasurable = "it serves no policy of the list"
		return claim
	case r.fault.Crosses && sel.Reset == strategies.ResetsNever:
		claim.Unmeasurable = "it has no reset, and a window ends"
		return claim
	}
	onStore := strings.ReplaceAll(r.fault.Settings, "{store}", store)
	settings := fmt.Sprintf("--policy %q %s %s", r.texts[served], r.list.Settings, onStore)
	name := r.run(settings)
	run := r.file.Runs[name]
	run.Command += " " + label
	r.file.Runs[name] = run
	claim.Cell = &claims.Cell{Run: name, Label: label}
	if sel.Down != nil {
		claim.Cell.Down = sel.Down(sel.Options)
	}
	return claim
}

// run is the name of the run with these settings, which is added if it is missing.
func (r *row) run(settings string) string {
	if name, ok := r.names[settings]; ok {
		return name
	}
	name := r.fault.Name
	if len(r.names) > 0 {
		name = fmt.Sprintf("%s-%d", r.fault.Name, len(r.names)+1)
	}
	r.names[settings] = name
	quick := settings + " " + r.list.Quick
	full := settings + " " + r.list.Full
	r.file.Runs[name] = claims.Run{Command: "run", Quick: quick, Full: full}
	return name
}

// changesLimit reports whether the limit changes in a run.
func (f *Fault) changesLimit() bool {
	return slices.ContainsFunc(strings.Fields(f.Settings), func(word string) bool {
		event, err := trouble.Parse(word)
		return err == nil && event.Kind() == trouble.Change
	})
}

// meets reports whether a strategy needs the store that has the fault, and which of its stores that is.
func (f *Fault) meets(selection strategies.Selection) (store string, ok bool) {
	if f.Needs == "" {
		return "", true
	}
	for _, n := range selection.Needs {
		kind, _, _ := strings.Cut(string(n), ".")
		if n == strategies.NeedSource {
			n = strategies.NeedPostgres
			kind = string(strategies.NeedPostgres)
		}
		if string(n) == f.Needs || kind == f.Needs && strings.Contains(f.Settings, "{store}") {
			return string(n), true
		}
	}
	return "", false
}
