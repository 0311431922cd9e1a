package all

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/strategies"
)

const root = "github.com/quotabench/quotabench/strategies"

// TestImportsEveryFamily walks the folders: a package that registers a strategy
// and is not imported here would be missing everywhere, without a word.
func TestImportsEveryFamily(t *testing.T) {
	imported := imports(t, "all.go")
	found := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
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

// registers reports whether the file calls strategies.Register, whatever name it
// imports the package under.
func registers(t *testing.T, path string) bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	name := ""
	for _, spec := range f.Imports {
		if spec.Path.Value == strconv.Quote(root) {
			name = "strategies"
			if spec.Name != nil {
				name = spec.Name.Name
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
			if x, ok := sel.X.(*ast.Ident); ok && name != "" && x.Name == name {
				found = true
			}
		}
		return true
	})
	return found
}
