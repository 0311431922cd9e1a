package doctest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/programs"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// TestInstallPage: docs/install.md has the table of programs. go test ./internal/kit/doctest -update writes it.
func TestInstallPage(t *testing.T) {
	const begin, end = "<!-- programs.tsv -->\n", "<!-- end of programs.tsv -->\n"
	path := filepath.Join(root, "docs", "install.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the table", path)
	}
	want := before + begin + programTable() + end + after
	if testenv.Update() {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Errorf("%s differs from internal/kit/programs/programs.tsv: go test ./internal/kit/doctest -update", path)
	}
}

func programTable() string {
	var table strings.Builder
	table.WriteString("| program | needed for | Debian, Ubuntu | Homebrew | installed by |\n|---|---|---|---|---|\n")
	code := func(text string) string {
		if text == "" {
			return ""
		}
		return "`" + text + "`"
	}
	for _, p := range programs.All() {
		use := p.Use
		if p.Option != "" {
			use += ": " + code(p.Option)
		}
		debian := code(cmp.Or(p.Package("debian"), p.Otherwise))
		homebrew := code(cmp.Or(p.Package("homebrew"), p.Otherwise))
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %s |\n", p.Title, use, debian, homebrew, p.Installed)
	}
	return table.String()
}

// base are programs that every machine has on which this repository can be built and tested.
var base = []string{"go", "git", "sh", "sleep", "true"}

// TestProgramsAreAskedFor: a test starts a program of another project only if testenv.Program or package storetest has
// found it, so that it is skipped with advice on a machine without the program.
func TestProgramsAreAskedFor(t *testing.T) {
	const planted = `package p
func f() {
	exec.LookPath("go")
	exec.Command("redis-cli", "info")
	exec.CommandContext(ctx, "python3")
	g("node '" + file + "'")
	g("/usr/bin/redis-server")
	exec.Command("git", "log")
	g("node is a word")
}`
	if got := unasked(t, "planted_test.go", planted); len(got) != 5 {
		t.Errorf("of five planted faults, %q are found", got)
	}
	for _, name := range tracked(t, "*_test.go") {
		for _, problem := range unasked(t, filepath.Join(root, name), nil) {
			t.Error(problem)
		}
	}
}

// unasked are the places of a file where a program is looked for or started by its name.
func unasked(t *testing.T, name string, src any) (found []string) {
	t.Helper()
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	report := func(n ast.Node, what string) {
		found = append(found, fmt.Sprintf("%s: %s: ask testenv.Program for it", files.Position(n.Pos()), what))
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && isCommand(text) {
				report(n, "the path or the command line "+n.Value)
			}
		case *ast.CallExpr:
			started, ok := starts(n)
			if ok && !slices.Contains(base, started) {
				report(n, "the program "+started)
			}
		}
		return true
	})
	return found
}

// starts returns the program that a call of package exec looks for or starts, if its name stands there.
func starts(call *ast.CallExpr) (program string, ok bool) {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	if of, ok := function.X.(*ast.Ident); !ok || of.Name != "exec" {
		return "", false
	}
	at := 0
	switch function.Sel.Name {
	case "LookPath":
		return "that exec.LookPath finds", true
	case "Command":
	case "CommandContext":
		at = 1
	default:
		return "", false
	}
	literal, ok := call.Args[at].(*ast.BasicLit)
	if !ok {
		return "", false
	}
	program, err := strconv.Unquote(literal.Value)
	return program, err == nil
}

// isCommand reports whether a text is the path of a program of the table, or a command line that begins with one.
func isCommand(text string) bool {
	for _, p := range programs.All() {
		for _, name := range p.Names() {
			if strings.HasPrefix(text, "/") && strings.Count(text, "/") > 1 && strings.HasSuffix(text, "/"+name) ||
				strings.HasPrefix(text, name+" '") || strings.HasPrefix(text, name+" -") {
				return true
			}
		}
	}
	return false
}
