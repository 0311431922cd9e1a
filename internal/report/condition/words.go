package condition

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/figures"
)

// structural are the names in a path that say nothing to a reader.
var structural = []string{"meter", "params", "parts", "runs", "samples", "series", "stored", "value"}

// words are an expression for readers: what it shows, with the runs that it is of if they are several.
func words(node ast.Expr, records map[string]*Record) string {
	runs := map[string]bool{}
	ast.Inspect(node, func(n ast.Node) bool {
		if ident, ok := n.(*ast.Ident); ok && records[ident.Name] != nil {
			runs[ident.Name] = true
		}
		return true
	})
	return namer{runs}.of(node)
}

type namer struct{ runs map[string]bool }

func (w namer) of(node ast.Expr) string {
	switch n := node.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(n.Value)
		if err != nil {
			return n.Value
		}
		return text
	case *ast.Ident:
		switch figure := figureOf(n.Name); {
		case len(w.runs) == 1 && w.runs[n.Name]:
			return ""
		case figure != nil && !w.runs[n.Name]:
			return figure.Key
		}
		return n.Name
	case *ast.ParenExpr:
		return "(" + w.of(n.X) + ")"
	case *ast.UnaryExpr:
		return n.Op.String() + w.of(n.X)
	case *ast.BinaryExpr:
		return w.of(n.X) + " " + n.Op.String() + " " + w.of(n.Y)
	case *ast.SelectorExpr:
		if slices.Contains(structural, n.Sel.Name) {
			return w.of(n.X)
		}
		name := strings.ReplaceAll(strings.TrimSuffix(n.Sel.Name, "_ns"), "_", "-")
		if figure := figures.Lookup(name); figure != nil && strings.Contains(name, "-") {
			name = figure.Title()
		}
		return format.Join(" ", w.of(n.X), name)
	case *ast.IndexExpr:
		return format.Join(" ", w.of(n.X), w.of(n.Index))
	case *ast.IndexListExpr:
		return format.Join(" ", w.of(n.X), format.List(n.Indices, " ", w.of))
	case *ast.CallExpr:
		return w.of(n.Fun) + "(" + format.List(n.Args, ", ", w.of) + ")"
	}
	return ""
}
