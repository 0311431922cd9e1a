package figures

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/testenv"
	"github.com/quotabench/quotabench/results"
)

// TestPlacesExist: a record has each figure where its declaration says, and one that is
// missing says why.
func TestPlacesExist(t *testing.T) {
	for _, f := range All() {
		if f.From != "" && !has(reflect.TypeFor[results.Summary](), f.From) || f.RoundFrom != "" && !has(reflect.TypeFor[results.Run](), f.RoundFrom) ||
			f.From+f.RoundFrom == "" && f.of == nil && f.run == nil {
			t.Errorf("%s: there is no %q", f.Key, f.From+f.RoundFrom)
		}
		if _, err := f.Value(&results.Summary{Rounds: 1, TimingsCount: true}); err != nil && err.Error() == "" && f.run == nil && f.RoundFrom == "" {
			t.Errorf("%s does not say why it is missing", f.Key)
		}
	}
}

// TestFunctionsHaveFigures: each function is of a figure that is declared.
func TestFunctionsHaveFigures(t *testing.T) {
	for _, keys := range [][]string{slices.Collect(maps.Keys(computed)), slices.Collect(maps.Keys(ofRound)), slices.Collect(maps.Keys(shown))} {
		for _, key := range keys {
			if Lookup(key) == nil {
				t.Errorf("%s is not in figures.json", key)
			}
		}
	}
	for name, keys := range declared().Tables {
		for _, key := range keys {
			if Lookup(key) == nil {
				t.Errorf("%s, which the table %s has, is not in figures.json", key, name)
			} else if strings.HasPrefix(name, "compared") && Of(key).Better != "lower" {
				t.Errorf("%s is compared as a figure that is worse if it is more", key)
			}
		}
	}
}

// has reports whether a type has a path, whatever is absent from a value of it.
func has(t reflect.Type, path string) bool {
	if path, ok := strings.CutPrefix(path, "latency."); ok {
		return has(reflect.TypeFor[results.Percentiles](), path)
	}
	for name := range strings.SplitSeq(path, ".") {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return false
		}
		index, ok := field(t, name)
		if !ok {
			return false
		}
		t = t.FieldByIndex(index).Type
	}
	return true
}

// TestFiguresAreToldApart: no two figures share what names them, and each is defined.
func TestFiguresAreToldApart(t *testing.T) {
	seen := map[string]string{}
	for _, f := range All() {
		for kind, name := range map[string]string{"key": f.Key, "column": f.CSV, "unit of a benchmark": f.Bench} {
			if other, ok := seen[kind+name]; ok && name != "" {
				t.Errorf("%s and %s share the %s %q", f.Key, other, kind, name)
			}
			seen[kind+name] = f.Key
		}
		if f.Key == "" || f.Name == "" || f.Unit == "" || f.Doc == "" {
			t.Errorf("%+v is not declared in full", f.Key)
		}
	}
}

// TestFiguresAreDocumented: docs/metrics.md lists the figures as they are declared.
func TestFiguresAreDocumented(t *testing.T) {
	const path, begin, end = "../../docs/metrics.md", "<!-- figures -->\n", "<!-- /figures -->"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(page), begin)
	_, tail, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has no place for the figures", path)
	}
	want := head + begin + list() + end + tail
	if testenv.Update() {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // a page
			t.Fatal(err)
		}
	}
	if string(page) != want && !testenv.Update() {
		t.Errorf("%s lists other figures than are declared: write it with go test ./internal/figures -update", path)
	}
}

// family is a figure of a group that a page lists in one row: percentiles of one latency.
var family = regexp.MustCompile(`^(?:([a-z]+)\.)?(p50|p90|p99|p99\.9|p99\.99|max)$`)

func list() string {
	var b strings.Builder
	b.WriteString("| name | unit | better | place | definition |\n|---|---|---|---|---|\n")
	keys := Keys()
	for _, f := range All() {
		if !slices.Contains(keys, f.Key) {
			continue
		}
		name, place, doc := "`"+f.Key+"`", strings.TrimPrefix(f.From, "latency."), f.Doc
		if m := family.FindStringSubmatch(f.Key); m != nil {
			if m[2] != "p50" {
				continue
			}
			prefix := strings.TrimSuffix(f.Key, "p50")
			name = "`" + prefix + "p50` to `" + prefix + "max`"
			place = place + " to max"
			doc = "latency by percentile" + strings.TrimPrefix(f.Doc, "latency that half of the requests stay within")
		}
		if place != "" {
			place = "`" + place + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, cmp.Or(f.Noun, string(f.Unit)), f.Better, place, doc)
	}
	return b.String()
}
