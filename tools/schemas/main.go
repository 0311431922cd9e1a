// Command schemas writes the JSON Schemas of records from their Go types: what
// is always written is required, and what a doc comment says is the description.
package main

import (
	"encoding"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/quotabench/quotabench/results"
)

// here is the import path of this directory, sources leads from it to the types, and folder to
// where the schemas are.
const (
	here    = "github.com/quotabench/quotabench/tools/schemas"
	sources = "../../results"
	folder  = sources + "/schema"
)

// document is one schema.
type document struct {
	file, title string
	version     int
	of          any
}

var documents = []document{
	{"results.schema.json", "quotabench results", results.SchemaVersion, results.File{}},
	{"exploration.schema.json", "quotabench exploration", results.ExplorationSchema, results.Exploration{}},
	{"series.schema.json", "quotabench series", results.SeriesVersion, results.SeriesFile{}},
}

// signed are the numbers that may be negative, by type and JSON name.
var signed = map[string][]string{
	"Drift":     {"units", "pct_of_limit", "pct_of_usage"},
	"TierDrift": {"units", "pct_of_limit", "pct_of_usage", "surplus"},
	"Clause":    {"bound"},
	"Counter":   {"drift", "worst"},
	"Finding":   {"units"},
	"Step":      {"in_use"},
	"Sample":    {"usage", "fill"},
	"Waited":    {"p90", "p99", "p999", "p9999"},
	// Those of a strategy's own are what it says.
	"Measure": {"value"}, "MeasureSummary": {"per_decision", "per_admitted"}, "Figure": {"value", "lo", "hi"},
}

// leastOf are the numbers whose least value is not 0, by JSON name.
var leastOf = map[string]string{"stalls_p99": "-1", "stalls_p999": "-1", "repetition": "1", "line": "1", "column": "-1", "number": "1"}

// words are what the texts of a type may say, by type and JSON name, if they are too many for a tag.
var words = map[string]map[string][]any{
	"Step": {"event": constants("StepEvent")}, "Percentile": {"status": constants("Status")},
}

// constants are the texts of the constants of a type, in their order.
func constants(of string) (out []any) {
	declared := regexp.MustCompile(`(?m)^\t\w+ +` + of + ` += "(.*?)"`)
	files, _ := filepath.Glob(sources + "/*.go") // the pattern is right
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		for _, m := range declared.FindAllSubmatch(b, -1) {
			out = append(out, string(m[1]))
		}
	}
	return out
}

func main() {
	for _, d := range documents {
		b, err := d.generate()
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, d.file), b, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// generate renders the schema. It reads the sources of the types, and has to run
// in this directory.
func (d document) generate() ([]byte, error) {
	r := jsonschema.Reflector{ExpandedStruct: true, Anonymous: true, Mapper: asText}
	if err := r.AddGoComments(here, sources, jsonschema.WithFullComment()); err != nil {
		return nil, fmt.Errorf("read the comments of %s: %w", sources, err)
	}
	if len(r.CommentMap) == 0 {
		return nil, fmt.Errorf("no comments of %s: run in %s", sources, here)
	}
	for k, c := range r.CommentMap {
		r.CommentMap[k] = strings.Join(strings.Fields(c), " ")
	}
	inheritComments(r.CommentMap, reflect.TypeOf(d.of), map[reflect.Type]bool{})
	s := r.Reflect(d.of)
	s.ID = jsonschema.ID("https://github.com/quotabench/quotabench/results/schema/" + d.file)
	s.Title = d.title
	version, ok := s.Properties.Get("schema")
	if !ok {
		return nil, fmt.Errorf("%T has no version", d.of)
	}
	version.Const = d.version
	bound(reflect.TypeOf(d.of).Name(), s)
	for name, def := range s.Definitions {
		bound(name, def)
	}
	b, err := json.MarshalIndent(s, "", "  ")
	return append(b, '\n'), err
}

// asText is the schema of lists of values that are written as texts; nil for all other types.
func asText(t reflect.Type) *jsonschema.Schema {
	if t.Kind() != reflect.Slice || !t.Elem().Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return nil
	}
	return &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "string"}}
}

// inheritComments gives a struct the comments of the fields that it embeds.
func inheritComments(comments map[string]string, t reflect.Type, seen map[reflect.Type]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		inheritComments(comments, t.Elem(), seen)
		return
	case reflect.Struct:
	default:
		return
	}
	if seen[t] {
		return
	}
	seen[t] = true
	for _, f := range reflect.VisibleFields(t) {
		if len(f.Index) > 1 {
			owner := t.FieldByIndex(f.Index[:len(f.Index)-1]).Type
			comments[t.PkgPath()+"."+t.Name()+"."+f.Name] = comments[owner.PkgPath()+"."+owner.Name()+"."+f.Name]
		}
		inheritComments(comments, f.Type, seen)
	}
}

// bound sets the least value of every number of an object, and the words of its texts.
func bound(name string, s *jsonschema.Schema) {
	if s.Properties == nil {
		return
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		if w := words[name][p.Key]; w != nil {
			p.Value.Enum = w
		}
		if (p.Value.Type != "integer" && p.Value.Type != "number") || slices.Contains(signed[name], p.Key) {
			continue
		}
		least := "0"
		if l, ok := leastOf[p.Key]; ok {
			least = l
		}
		p.Value.Minimum = json.Number(least)
	}
}
