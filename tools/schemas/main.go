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

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/results"
)

// here is the import path of this directory, sources leads from it to the types, sourcesOfCodes to the
// words that they may hold, and folder to where the schemas are.
const (
	here           = "github.com/quotabench/quotabench/tools/schemas"
	sources        = "../../results"
	sourcesOfCodes = "../../internal/codes"
	folder         = sources + "/schema"
)

// document is one schema.
type document struct {
	file, title string
	version     int
	of          any
}

var documents = []document{
	{"results.schema.json", "quotabench results", results.SchemaVersion, results.File{}},
	{"exploration.schema.json", "quotabench exploration", codes.ExplorationVersion, results.Exploration{}},
	{"series.schema.json", "quotabench series", codes.SeriesVersion, results.SeriesFile{}},
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
var leastOf = map[string]string{"stalls_p99": "-1", "stalls_p999": "-1", "repetition": "1", "line": "1", "column": "-1",
	"number": "1"}

// words are what the texts of a type may say, by type and JSON name, if they are too many for a tag.
var words = map[string]map[string][]any{
	"Step":       {"event": constants("StepEvent"), "told": constants("Told")},
	"Percentile": {"status": constants("Status")},
}

// constants are the texts of the constants of a type, in their order.
func constants(of string) (out []any) {
	declared := regexp.MustCompile(`(?m)^\t\w+ +` + of + ` += "(.*?)"`)
	files, _ := filepath.Glob(sourcesOfCodes + "/*.go") // the pattern is right
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		for _, datas := range declared.FindAllSubmatch(data, -1) {
			out = append(out, string(datas[1]))
		}
	}
	return out
}

func main() {
	for _, document := range documents {
		data, err := document.generate()
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, document.file), data, 0o644)
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
	reflector := jsonschema.Reflector{ExpandedStruct: true, Anonymous: true, Mapper: asText}
	if err := reflector.AddGoComments(here, sources, jsonschema.WithFullComment()); err != nil {
		return nil, fmt.Errorf("read the comments of %s: %w", sources, err)
	}
	if len(reflector.CommentMap) == 0 {
		return nil, fmt.Errorf("no comments of %s: run in %s", sources, here)
	}
	for k, text := range reflector.CommentMap {
		reflector.CommentMap[k] = strings.Join(strings.Fields(text), " ")
	}
	inheritComments(reflector.CommentMap, reflect.TypeOf(d.of), map[reflect.Type]bool{})
	schema := reflector.Reflect(d.of)
	schema.ID = jsonschema.ID("https://github.com/quotabench/quotabench/results/schema/" + d.file)
	schema.Title = d.title
	version, ok := schema.Properties.Get("schema")
	if !ok {
		return nil, fmt.Errorf("%T has no version", d.of)
	}
	version.Const = d.version
	bound(reflect.TypeOf(d.of).Name(), schema)
	for name, def := range schema.Definitions {
		bound(name, def)
	}
	data, err := json.MarshalIndent(schema, "", "  ")
	return append(data, '\n'), err
}

// asText is the schema of lists of values that are written as texts; nil for all other types.
func asText(kind reflect.Type) *jsonschema.Schema {
	if kind.Kind() != reflect.Slice || !kind.Elem().Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return nil
	}
	return &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "string"}}
}

// inheritComments gives a struct the comments of the fields that it embeds.
func inheritComments(comments map[string]string, kind reflect.Type, seen map[reflect.Type]bool) {
	switch kind.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		inheritComments(comments, kind.Elem(), seen)
		return
	case reflect.Struct:
	default:
		return
	}
	if seen[kind] {
		return
	}
	seen[kind] = true
	for _, field := range reflect.VisibleFields(kind) {
		if len(field.Index) > 1 {
			owner := kind.FieldByIndex(field.Index[:len(field.Index)-1]).Type
			comments[kind.PkgPath()+"."+kind.Name()+"."+field.Name] = comments[owner.PkgPath()+"."+owner.Name()+"."+field.Name]
		}
		inheritComments(comments, field.Type, seen)
	}
}

// bound sets the least value of every number of an object, and the words of its texts.
func bound(name string, schema *jsonschema.Schema) {
	if schema.Properties == nil {
		return
	}
	for pair := schema.Properties.Oldest(); pair != nil; pair = pair.Next() {
		if w := words[name][pair.Key]; w != nil {
			pair.Value.Enum = w
		}
		if (pair.Value.Type != "integer" && pair.Value.Type != "number") || slices.Contains(signed[name], pair.Key) {
			continue
		}
		least := "0"
		if text, ok := leastOf[pair.Key]; ok {
			least = text
		}
		pair.Value.Minimum = json.Number(least)
	}
}
