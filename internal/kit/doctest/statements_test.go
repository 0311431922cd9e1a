package doctest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	maxParams  = 5 // besides a context or a test
	maxAssigns = 3
)

// TestStatementsAreReadable: a function has few positional parameters, and a statement assigns
// few values.
func TestStatementsAreReadable(t *testing.T) {
	const planted = `package p
func f(ctx context.Context, a, b, c, d, e, f int) {}
func g(ctx context.Context, a, b, c, d, e int) { a, b, c = 1, 2, 3 }
func h() { a, b, c, d := 1, 2, 3, 4 }`
	if got := unreadable(t, "planted.go", planted); len(got) != 2 {
		t.Errorf("of two planted faults, %q are found", got)
	}
	for _, name := range tracked(t, "*.go") {
		// The interceptor of gRPC has the parameters that gRPC wants.
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "grpcstore/dial.go") {
			continue
		}
		for _, problem := range unreadable(t, filepath.Join(root, name), nil) {
			t.Error(problem)
		}
	}
}

func unreadable(t *testing.T, name string, src any) (found []string) {
	t.Helper()
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		count := 0
		most := maxParams
		what := "parameters"
		switch n := n.(type) {
		case *ast.FuncType:
			for _, p := range n.Params.List {
				if x, ok := p.Type.(*ast.SelectorExpr); !ok || !slices.Contains([]string{"Context", "TB"}, x.Sel.Name) {
					count += max(len(p.Names), 1)
				}
			}
		case *ast.AssignStmt:
			if len(n.Lhs) == len(n.Rhs) {
				count = len(n.Lhs)
				most = maxAssigns
				what = "assignments in one statement"
			}
		}
		if count > most {
			found = append(found, fmt.Sprintf("%s: %d %s, at most %d", files.Position(n.Pos()), count, what, most))
		}
		return true
	})
	return found
}

// tracked are the files of the repository whose names match, by their paths in it. Elsewhere than in a checkout of git
// the test is skipped.
func tracked(t *testing.T, pattern string) []string {
	t.Helper()
	out, err := exec.Command("git", "-C", root, "ls-files", pattern).Output()
	if err != nil {
		t.Skip("this is no git checkout: ", err)
	}
	return strings.Fields(string(out))
}
