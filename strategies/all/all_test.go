package all

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

const root = "github.com/quotabench/quotabench/strategies"

// TestImportsEveryFamily walks the folders: a package that registers a strategy
// and is not imported here would be missing everywhere, without a word.
func TestImportsEveryFamily(t *testing.T) {
	imported := imports(t, "all.go")
	found := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && d.Name() == "internal" {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		if !registers(t, path) {
			return nil
		}
		found++
		rel, err := filepath.Rel("..", filepath.Dir(path))
		if err != nil {
			return err
		}
		if name := root + "/" + filepath.ToSlash(rel); !imported[name] {
			t.Errorf("%s registers a strategy, and all.go does not import %s", path, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Error("no file under strategies registers anything: this test looks in the wrong place")
	}
	if len(strategies.All()) == 0 {
		t.Error("the registry is empty")
	}
}

func imports(t *testing.T, file string) map[string]bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, spec := range f.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = true
	}
	return out
}

// registers reports whether the file calls strategies.Register or family.Register,
// whatever name it imports the package under.
func registers(t *testing.T, path string) bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, spec := range f.Imports {
		for _, imported := range []string{root, root + "/internal/family"} {
			if spec.Path.Value == strconv.Quote(imported) {
				names[cmp.Or(spec.Name, ast.NewIdent(filepath.Base(imported))).Name] = true
			}
		}
	}
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Register" {
			if x, ok := sel.X.(*ast.Ident); ok && names[x.Name] {
				found = true
			}
		}
		return true
	})
	return found
}

// TestNotes: every strategy of this module says how it works and when to use it.
func TestNotes(t *testing.T) {
	for _, m := range strategies.All() {
		n := &m.Notes
		if len(n.How) == 0 || n.Use == "" || n.Avoid == "" {
			t.Errorf("%s: its notes lack how it works, when to use it, or when not", m.Name)
		}
		for _, s := range slices.Concat(n.How, n.Deviations, []string{n.Use, n.Avoid}) {
			if s != "" && !strings.HasSuffix(s, ".") {
				t.Errorf("%s: the note %q does not end in a full stop", m.Name, s)
			}
		}
	}
}

// TestRecordsPromise: what comes from a design record has what that record promises
// in addition to what it declares itself, unless the record promises nothing of it.
func TestRecordsPromise(t *testing.T) {
	nothing := map[string]string{
		"pg-check":       "ADR-005 begins with it and says how slow it is, and ADR-008 turns it down",
		"check-then-set": "ADR-RM-3 shows the race that it begins with",
	}
	for _, m := range strategies.All() {
		if m.Source == "" || m.Form != strategies.Documented && m.Form != strategies.Hardened {
			continue
		}
		if _, none := nothing[m.Name]; none != (len(m.Record) == 0) {
			t.Errorf("%s: its record promises %+v", m.Name, m.Record)
		}
		delete(nothing, m.Name)
		for _, c := range m.Record {
			if c.Source == "" || c.Says == "" || !strings.Contains(m.Source, c.Source) {
				t.Errorf("%s comes from %s, and %q is promised", m.Name, m.Source, c.Claimed())
			}
		}
	}
	if len(nothing) > 0 {
		t.Errorf("gone: %v", nothing)
	}
}

// TestCatalogue compares with the catalogue of strategies, if it is at hand: each
// of its rows is registered, with the source that the row names.
func TestCatalogue(t *testing.T) {
	text, err := os.ReadFile("../../../shared/design/strategies.md")
	if err != nil {
		t.Skip("the catalogue is not here: ", err)
	}
	row := regexp.MustCompile("(?m)^\\| (\\d+) \\| `([a-z0-9-]+)` \\| ([^|]*) \\|")
	rows := row.FindAllStringSubmatch(string(text), -1)
	if len(rows) < 39 {
		t.Fatalf("the catalogue has %d rows, and 39 were there", len(rows))
	}
	// The catalogue numbers the design records; strategies call them by their names.
	records := map[string]string{"000": "ADR-008", "001": "ADR-009", "002": "ProjectEPU", "003": "ADR-005",
		"004": "ADR-RM-3"}
	record := regexp.MustCompile(`\b00[0-4]\b`)
	for _, r := range rows {
		m, err := strategies.Lookup(r[2])
		if err != nil {
			t.Errorf("row %s, %s, is not registered", r[1], r[2])
			continue
		}
		for _, want := range record.FindAllString(r[3], -1) {
			if name := records[want]; name == "" || !strings.Contains(m.Source, name) {
				t.Errorf("row %s, %s: source %q does not name record %s, %q", r[1], r[2], m.Source, want, name)
			}
		}
	}
}

// TestBriskOptions: the core set gives a strategy the options with which it comes to
// rest at once, and its name alone gives it its defaults.
func TestBriskOptions(t *testing.T) {
	core, err := strategies.Parse("core")
	if err != nil {
		t.Fatal(err)
	}
	given := 0
	for _, sel := range core {
		for name, want := range sel.BriskOptions {
			given++
			if got := sel.Options[name]; got != want {
				t.Errorf("core has %s: option %s is %q, want %q", sel, name, got, want)
			}
		}
		alone := testkit.Strategy(t, sel.Name)
		if sel.BriskOptions != nil && alone.String() == sel.String() {
			t.Errorf("%s has the same options where it is named", sel)
		}
	}
	if given == 0 {
		t.Error("no core strategy has options of its own there: this test shows nothing")
	}
}

// TestCore: a run that names no strategy has a quota, a fixed window, a sliding window and a
// bucket in it.
func TestCore(t *testing.T) {
	own := map[quota.Kind]bool{}
	for _, m := range strategies.All() {
		if m.Core && m.Form != strategies.Baseline {
			own[m.Kinds[0]] = true
		}
	}
	for _, kind := range []quota.Kind{quota.Standing, quota.CalendarMonth, quota.Rolling, quota.Bucket} {
		if !own[kind] {
			t.Errorf("no core strategy is made for %s windows", kind)
		}
	}
}
