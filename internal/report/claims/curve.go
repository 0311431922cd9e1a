package claims

import (
	"go/ast"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/results"
)

// Curve is a figure at each value of a parameter.
type Curve struct {
	// Parameter is what the sweep varies, and Shown the figure.
	Parameter string       `json:"parameter"`
	Shown     string       `json:"shown"`
	Unit      figures.Unit `json:"unit,omitempty"`
	// Limit is that of the first comparison of the claim's condition; absent if it varies.
	Limit *float64 `json:"limit,omitempty"`
	// Simulated is set if no real time was measured.
	Simulated bool    `json:"simulated,omitempty"`
	Points    []Point `json:"points"`
}

// Point is what is known of the figure at one value: it lies between Lo and Hi.
type Point struct {
	At    string  `json:"at"`
	Value float64 `json:"value"`
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
}

// draw keeps the curve of a claim. Values without the figure are left out.
func (j *Judgement) draw(claim *Claim, records map[string]*Record) error {
	sweep := records[claim.sweep]
	if claim.curve == nil || sweep == nil || sweep.File == nil || sweep.File.Sweep == nil {
		return nil
	}
	swept := sweep.File.Sweep.Parameters[0]
	curve := &Curve{Parameter: swept.Name, Simulated: sweep.File.Kind == results.Simulated, Points: []Point{}}
	for _, value := range swept.Values {
		at := pointOf(claim, records, claim.sweep, value)
		v, err := at.value(claim.curve.node)
		if err == nil {
			_, err = at.truth(claim.holds.node)
		}
		if err != nil {
			return err
		}
		curve.Shown = at.name(claim.curve, claim.Named)
		if limit, ok := at.first.right.(Number); ok && limit.Lo == limit.Hi {
			curve.Limit = &limit.Value
		}
		if n, ok := v.(Number); ok {
			curve.Unit = n.Unit
			curve.Points = append(curve.Points, Point{value, n.Value, finite(n.Lo, n.Value), finite(n.Hi, n.Value)})
		}
	}
	j.Curve = curve
	return nil
}

func finite(x, otherwise float64) float64 {
	if math.IsInf(x, 0) {
		return otherwise
	}
	return x
}

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
		if len(w.runs) != 1 || !w.runs[n.Name] {
			return n.Name
		}
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
