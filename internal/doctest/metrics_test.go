// Package doctest holds documentation to the code that it speaks about.
package doctest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

var (
	quoted   = regexp.MustCompile("`([^`]+)`")
	testName = regexp.MustCompile(`^([a-z][a-z/]*)\.((?:Test|Fuzz|Example)\w*)$`)
)

// row is one line of a table: cells without the bars around them.
type row struct {
	line  int
	cells []string
}

// rowsOf are the rows of all tables whose last column is headed "tests".
func rowsOf(text string) (rows []row) {
	in := false
	for i, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "|") {
			in = false
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for j := range cells {
			cells[j] = strings.TrimSpace(cells[j])
		}
		last := cells[len(cells)-1]
		switch {
		case last == "tests":
			in = true
		case in && strings.Trim(last, "-") != "":
			rows = append(rows, row{line: i + 1, cells: cells})
		}
	}
	return rows
}

// testsIn are the names of the tests in one folder.
func testsIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				names[fn.Name.Name] = true
			}
		}
	}
	return names
}

// TestMetrics: every definition names the file that computes it and the tests that
// hold it, or says that there is none, and both exist.
func TestMetrics(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := rowsOf(string(text))
	if len(rows) < 50 {
		t.Fatalf("docs/metrics.md has %d definitions with tests", len(rows))
	}
	known := map[string]map[string]bool{}
	for _, r := range rows {
		if len(r.cells) != 3 {
			t.Errorf("line %d has %d columns", r.line, len(r.cells))
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(r.cells[1], -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("line %d: %v", r.line, err)
			}
		}
		found := strings.Contains(r.cells[2], "no test")
		for _, m := range quoted.FindAllStringSubmatch(r.cells[2], -1) {
			parts := testName.FindStringSubmatch(m[1])
			if parts == nil {
				t.Errorf("line %d: %q is not of the form folder.TestName", r.line, m[1])
				continue
			}
			dir, name := parts[1], parts[2]
			if known[dir] == nil {
				known[dir] = testsIn(t, dir)
			}
			if found = true; !known[dir][name] {
				t.Errorf("line %d: there is no %s in %s", r.line, name, dir)
			}
		}
		if !found {
			t.Errorf("line %d names no test and does not say so", r.line)
		}
	}
}

// TestMetricsNameEveryFinding: a finding of the audit that is not in the table is
// one that readers of a report cannot look up.
func TestMetricsNameEveryFinding(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	codes := findings(t, filepath.Join(root, "harness"))
	if len(codes) < 30 {
		t.Fatalf("only %d findings in the code: %v", len(codes), codes)
	}
	for code, where := range codes {
		if !strings.Contains(string(text), "`"+code+"`") {
			t.Errorf("the finding %s (%s) is not in docs/metrics.md", code, where)
		}
	}
}

// findings are the codes that the audit discards with, each with one place.
func findings(t *testing.T, dir string) map[string]string {
	t.Helper()
	codes := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 1 && discards(call.Fun) {
				if lit, ok := call.Args[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if code, err := strconv.Unquote(lit.Value); err == nil {
						codes[code] = set.Position(lit.Pos()).String()
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return codes
}

// discards reports whether a function is one that adds a finding.
func discards(fun ast.Expr) bool {
	name := ""
	switch f := fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
	}
	return name == "Discard" || name == "discard" || name == "note"
}
