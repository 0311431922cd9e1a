// Package claims judges what a design record promises: each promise is a condition on figures
// of runs, simulations and searches that claims share.
package claims

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/yamlfile"
	"github.com/quotabench/quotabench/internal/report/condition"
	"github.com/quotabench/quotabench/results"
)

// File is one claims file: what one design record promises.
type File struct {
	// Record is the name of the design record, e.g. "ADR-008".
	Record string `yaml:"record"`
	// Title says in a few words what it is about.
	Title string `yaml:"title"`
	// Summary is what a reader should take from the verdicts of a full pass.
	Summary Summary `yaml:"summary"`
	// Runs are command lines by their names, which claims share.
	Runs map[string]Run `yaml:"runs"`
	// Claims in the order of reports.
	Claims []Claim `yaml:"claims"`
	// Longer is the duration with which cells are measured once more that are undecided; empty for none.
	Longer string `yaml:"-"`

	path       string
	ast        *ast.File
	properties []results.Property
}

// Summary of a design record, in sentences that name claims by their ids.
type Summary struct {
	// Keep is what holds, and Change what does not.
	Keep   string `yaml:"keep"`
	Change string `yaml:"change"`
	// Instead is the strategy that does it, and its price.
	Instead string `yaml:"instead"`
}

// Run is a command that leaves a record.
type Run struct {
	// Command is what follows "quotabench": run, sim or explore with its arguments.
	Command string `yaml:"command"`
	// Quick is added to it for a quick pass, and Full for a full one.
	Quick string `yaml:"quick"`
	Full  string `yaml:"full"`

	args []string
}

// UnmarshalYAML also takes a command alone.
func (r *Run) UnmarshalYAML(data []byte) error {
	type whole Run
	if err := yaml.Unmarshal(data, &r.Command); err == nil {
		return nil
	}
	return yaml.UnmarshalWithOptions(data, (*whole)(r), yaml.Strict())
}

// Claim is one promise.
type Claim struct {
	// ID names it, e.g. "T1".
	ID string `yaml:"id"`
	// Source is where the record says so.
	Source string `yaml:"source"`
	// Says is the promise in a sentence.
	Says string `yaml:"says"`
	// Promised is the record's figure.
	Promised string `yaml:"promised"`
	// Holds is the condition under which the promise is kept.
	Holds string `yaml:"holds"`
	// Each is a sweep. The condition is then judged at each of its points, as "x".
	Each string `yaml:"each"`
	// Needs has to hold, or the claim is undecided: what it is about did not happen.
	Needs string `yaml:"needs"`
	// Shows is the figure of ours; empty for the left side of the first comparison of Holds.
	Shows string `yaml:"shows"`
	// Named is what readers call it; empty for the expression in words.
	Named string `yaml:"named"`
	// Form is the same as a count or as a ratio, which does not depend on the machine.
	Form string `yaml:"form"`
	// Curve is a figure of a sweep that a page draws at each of its points.
	Curve string `yaml:"curve"`
	// Schedule is a search, of which a page prints the shortest schedule.
	Schedule string `yaml:"schedule"`
	// Tolerance is by how much of the limit of a comparison, in percent, a figure is called close to it; 0 is 10.
	Tolerance float64 `yaml:"tolerance"`
	// Gate makes the command fail unless it holds.
	Gate bool `yaml:"gate"`
	// Note says what readers have to know of the verdict, e.g. what the record leaves open.
	Note string `yaml:"note"`
	// Unmeasurable says why it cannot be measured here; Holds is empty then.
	Unmeasurable string `yaml:"unmeasurable"`
	// Cell is set if it is one of a matrix. It is then no claim of a file.
	Cell *Cell `yaml:"-"`

	holds, needs, shows, form, curve *condition.Expression
	sweep                            string // of the curve
}

// within is the tolerance, as a share of the limit.
func (c *Claim) within() float64 { return cmp.Or(c.Tolerance, 10) / 100 }

//go:embed records/*.yaml
var records embed.FS

// Builtin are the claims of the design records whose strategies this program has.
func Builtin(properties []results.Property) (out []*File, err error) {
	names, err := fs.Glob(records, "records/*.yaml")
	for _, name := range names {
		data, err := records.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, err := Parse(name, data, properties)
		if err != nil {
			return nil, err
		}
		out = append(out, file)
	}
	return out, err
}

// Parse reads a claims file. Searches can have the properties. An error names the path, the line and what to do.
func Parse(path string, data []byte, properties []results.Property) (*File, error) {
	file := &File{path: path, properties: properties}
	if err := yamlfile.Decode(path, data, file); err != nil {
		return nil, err
	}
	file.ast, _ = parser.ParseBytes(data, 0) // which was decoded
	return file, file.check()
}

// wrong is an error at a place of the file.
func (f *File) wrong(at string, err error) error {
	line := 1
	if path, bad := yaml.PathString(at); bad == nil {
		if n, bad := path.FilterFile(f.ast); bad == nil && n.GetToken() != nil {
			line = n.GetToken().Position.Line
		}
	}
	return fmt.Errorf("%s:%d: %w", f.path, line, err)
}

func (f *File) check() error {
	if f.Record == "" {
		return f.wrong("$", errors.New("name the design record: record: NAME"))
	}
	for name, run := range f.Runs {
		at := "$.runs." + name
		if err := format.CheckFileName(name); err != nil {
			return f.wrong("$.runs", err)
		}
		var err error
		run.args, err = split(run.Command)
		if err == nil && (len(run.args) == 0 || !slices.Contains(commands, run.args[0])) {
			err = fmt.Errorf("the command %q leaves no record: begin with one of %s", run.Command, strings.Join(commands, ", "))
		}
		if err == nil && slices.ContainsFunc(run.args, func(text string) bool {
			return text == "--out" || strings.HasPrefix(text, "--out=")
		}) {
			err = errors.New("leave out --out: claims chooses the directory")
		}
		if err != nil {
			return f.wrong(at, err)
		}
		f.Runs[name] = run
	}
	seen := map[string]bool{}
	for i := range f.Claims {
		claim := &f.Claims[i]
		at := fmt.Sprintf("$.claims[%d]", i)
		switch {
		case claim.ID == "" || claim.Says == "":
			return f.wrong(at, errors.New("a claim needs an id and a sentence: write id: and says: with it"))
		case seen[claim.ID]:
			return f.wrong(at+".id", fmt.Errorf("%s is there twice", claim.ID))
		case (claim.Holds == "") == (claim.Unmeasurable == ""):
			return f.wrong(at, fmt.Errorf("%s needs one of the keys holds and unmeasurable", claim.ID))
		case !(claim.Tolerance >= 0) || math.IsInf(claim.Tolerance, 1): // NaN is not above 0 either
			return f.wrong(at+".tolerance", fmt.Errorf("%v is no tolerance: give percent, from 0 on", claim.Tolerance))
		}
		seen[claim.ID] = true
		if err := f.parse(claim, at); err != nil {
			return err
		}
	}
	return nil
}

// commands leave a record.
var commands = []string{"run", "sim", "explore"}

// parse reads the expressions of a claim.
func (f *File) parse(claim *Claim, at string) error {
	scope := condition.Scope{Records: slices.Sorted(maps.Keys(f.Runs)), Properties: f.properties}
	if claim.Each != "" && (!f.Runs[claim.Each].sweeps()) {
		return f.wrong(at+".each", fmt.Errorf("%s is no run or simulation with --param or --until", claim.Each))
	}
	for _, e := range []struct {
		name, text string
		expression **condition.Expression
	}{
		{"holds", claim.Holds, &claim.holds},
		{"needs", claim.Needs, &claim.needs},
		{"shows", claim.Shows, &claim.shows},
		{"form", claim.Form, &claim.form},
		{"curve", claim.Curve, &claim.curve},
	} {
		if e.text == "" {
			continue
		}
		expression, err := condition.Parse(strings.TrimSpace(e.text), scope)
		if err != nil {
			return f.wrong(at+"."+e.name, err)
		}
		*e.expression = expression
	}
	if claim.curve != nil {
		names := claim.curve.Records()
		i := slices.IndexFunc(names, func(name string) bool { return f.Runs[name].sweeps() })
		if i < 0 {
			return f.wrong(at+".curve", fmt.Errorf("no run of %q has --param or --until", claim.Curve))
		}
		claim.sweep = names[i]
	}
	if claim.Schedule != "" && (f.Runs[claim.Schedule].args == nil || f.Runs[claim.Schedule].args[0] != "explore") {
		return f.wrong(at+".schedule", fmt.Errorf("%s is no search among the runs", claim.Schedule))
	}
	return nil
}

// sweeps reports whether the run is one at several values, in a quick pass or a full one.
func (r Run) sweeps() bool {
	words := slices.Concat(r.args, strings.Fields(r.Quick), strings.Fields(r.Full))
	return slices.ContainsFunc(words, func(text string) bool {
		return strings.HasPrefix(text, "--param") || strings.HasPrefix(text, "--until")
	})
}

// runs that a claim needs.
func (c *Claim) runs() (names []string) {
	for _, expression := range []*condition.Expression{c.holds, c.needs, c.shows, c.form, c.curve} {
		if expression != nil {
			names = append(names, expression.Records()...)
		}
	}
	if c.Schedule != "" {
		names = append(names, c.Schedule)
	}
	if c.Cell != nil {
		names = append(names, c.Cell.Run)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

var (
	word   = regexp.MustCompile(`('[^']*'|"[^"]*"|[^'" \n\t])+`)
	quoted = regexp.MustCompile(`'([^']*)'|"([^"]*)"`)
)

// split is a command line as a shell would take it apart, without anything but quotes.
func split(line string) (args []string, err error) {
	if strings.ContainsAny(word.ReplaceAllString(line, ""), `'"`) {
		return nil, fmt.Errorf("%q: a quote is not closed", line)
	}
	for _, text := range word.FindAllString(line, -1) {
		args = append(args, quoted.ReplaceAllString(text, "$1$2"))
	}
	return args, nil
}
