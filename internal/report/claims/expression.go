package claims

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// Expression is a formula over the records of runs. It has the form of one of Go, whose parser reads it: any library
// would still lack intervals and a third truth value.
//
//	stores["three-tier"].throughput / stores["pg-check"].throughput >= 50
//
// A name is a run. Its [ ] take the label of a strategy, which may be left out if there is one only. What follows a dot
// is a figure, with _ for -, or a field of the files. On a list it gives that of each element, and [ ] take texts that
// tell one element from the others.
type Expression struct {
	text string
	node ast.Expr
	runs []string
}

// units that a number may be multiplied by. Times are in nanoseconds, as in the files.
var units = map[string]float64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "kB": 1e3, "MB": 1e6}

// point is the name of the value at which a sweep is looked at.
const point = "x"

// parse reads an expression, whose runs are among those that are declared. Searches have the properties.
func parse(text string, runs []string, properties []results.Property) (*Expression, error) {
	node, err := parser.ParseExpr(text)
	if err != nil {
		if list, ok := errors.AsType[scanner.ErrorList](err); ok {
			err = fmt.Errorf("column %d: %s", list[0].Pos.Column, list[0].Msg)
		}
		return nil, fmt.Errorf("%q is no expression: %w", text, err)
	}
	expression := &Expression{text: text, node: node}
	if err := expression.check(node, runs, properties); err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return expression, nil
}

// String is the expression as it was written.
func (x *Expression) String() string { return x.text }

// check refuses what no record could answer.
func (x *Expression) check(node ast.Expr, runs []string, properties []results.Property) error {
	parts := []ast.Expr{}
	switch n := node.(type) {
	case *ast.BasicLit:
		return nil
	case *ast.Ident:
		return x.name(n.Name, runs)
	case *ast.ParenExpr:
		parts = append(parts, n.X)
	case *ast.UnaryExpr:
		if n.Op != token.NOT && n.Op != token.SUB {
			return fmt.Errorf("%s is not known", n.Op)
		}
		parts = append(parts, n.X)
	case *ast.BinaryExpr:
		if !slices.Contains(operators, n.Op) {
			return fmt.Errorf("%s is not known", n.Op)
		}
		parts = append(parts, n.X, n.Y)
	case *ast.SelectorExpr:
		name := n.Sel.Name
		property := results.Property(strings.ReplaceAll(name, "_", "-"))
		if !known()[name] && !ofSeries(n.X) && !slices.Contains(properties, property) {
			return unknownName(name, properties)
		}
		parts = append(parts, n.X)
	case *ast.IndexExpr:
		parts = append(parts, n.X, n.Index)
	case *ast.IndexListExpr:
		parts = append([]ast.Expr{n.X}, n.Indices...)
	case *ast.CallExpr:
		ident, ok := n.Fun.(*ast.Ident)
		if !ok || !slices.Contains(functions(), ident.Name) {
			return quota.Unknown("function", fmt.Sprint(n.Fun), functions(), "")
		}
		parts = n.Args
	default:
		return errors.New("it takes figures, numbers, texts, + - * /, comparisons, && || ! and functions")
	}
	for _, expr := range parts {
		if err := x.check(expr, runs, properties); err != nil {
			return err
		}
	}
	return nil
}

// ofSeries reports whether what follows may be a counter of the strategy's, whose name no file form knows.
func ofSeries(node ast.Expr) bool {
	expr, ok := node.(*ast.SelectorExpr)
	return ok && expr.Sel.Name == "series"
}

var operators = []token.Token{
	token.ADD, token.SUB, token.MUL, token.QUO, token.LAND, token.LOR,
	token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ,
}

func (x *Expression) name(name string, runs []string) error {
	_, unit := units[name]
	switch {
	case slices.Contains(runs, name):
		x.runs = collect.Union(x.runs, name)
	case !unit && name != point:
		return quota.Unknown("run", name, runs, "")
	}
	return nil
}

// evaluation is an expression over records.
type evaluation struct {
	records map[string]*Record
	point   any // of a sweep
	// tolerance is the share of a limit within which a figure is close to it.
	tolerance float64
	// first is the first comparison: what was compared, and with what.
	first *comparison
}

type comparison struct {
	left, right any
	node        ast.Expr // of the left side
}

// value of a node: a number, a text, a truth, a part of a record, a list or what is missing.
func (e *evaluation) value(node ast.Expr) (any, error) {
	switch n := node.(type) {
	case *ast.BasicLit:
		return literal(n)
	case *ast.Ident:
		return e.named(n.Name), nil
	case *ast.ParenExpr:
		return e.value(n.X)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			truth, err := e.truth(n.X)
			return negate(truth), err
		}
		value, err := e.value(n.X)
		if err != nil {
			return nil, err
		}
		return compute("-", exactly(0), value)
	case *ast.BinaryExpr:
		return e.binary(n)
	case *ast.SelectorExpr:
		value, err := e.value(n.X)
		if err != nil {
			return nil, err
		}
		return sel(value, n.Sel.Name)
	case *ast.IndexExpr:
		return e.index(n.X, []ast.Expr{n.Index})
	case *ast.IndexListExpr:
		return e.index(n.X, n.Indices)
	case *ast.CallExpr:
		return e.call(n)
	}
	return nil, errors.New("it is no expression")
}

func (e *evaluation) named(name string) any {
	if record := e.records[name]; record != nil {
		return record
	}
	if name == point && e.point != nil {
		return e.point
	}
	if by, ok := units[name]; ok {
		return exactly(by)
	}
	return absent("%s has not run", name)
}

func literal(n *ast.BasicLit) (any, error) {
	if n.Kind == token.STRING {
		return strconv.Unquote(n.Value)
	}
	value, err := strconv.ParseFloat(n.Value, 64)
	if err != nil {
		return nil, fmt.Errorf("%s is no number", n.Value)
	}
	return exactly(value), nil
}

func (e *evaluation) binary(n *ast.BinaryExpr) (any, error) {
	if n.Op == token.LAND || n.Op == token.LOR {
		truth, err := e.truth(n.X)
		if err != nil {
			return nil, err
		}
		b, err := e.truth(n.Y)
		return join(n.Op == token.LAND, truth, b), err
	}
	value, err := e.value(n.X)
	if err != nil {
		return nil, err
	}
	b, err := e.value(n.Y)
	if err != nil {
		return nil, err
	}
	switch n.Op {
	case token.ADD, token.SUB, token.MUL, token.QUO:
		return compute(n.Op.String(), value, b)
	}
	if e.first == nil {
		e.first = &comparison{value, b, n.X}
	}
	return compare(n.Op.String(), value, b, e.tolerance)
}

// truth of a condition.
func (e *evaluation) truth(node ast.Expr) (Truth, error) {
	value, err := e.value(node)
	switch x := value.(type) {
	case Truth:
		return x, err
	case missing:
		return Truth{Why: x.why, Close: x.here}, err
	}
	if err == nil {
		err = errors.New("it is no condition: compare it with something, e.g. > 0")
	}
	return Truth{}, err
}

func (e *evaluation) index(expr ast.Expr, at []ast.Expr) (any, error) {
	value, err := e.value(expr)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, x := range at {
		k, err := e.value(x)
		if err != nil {
			return nil, err
		}
		key, ok := k.(string)
		if !ok {
			return nil, errNoKeys
		}
		keys = append(keys, key)
	}
	return index(value, keys)
}

// functions that expressions may call.
func functions() []string {
	names := slices.AppendSeq([]string{"share", "count"}, maps.Keys(reductions))
	slices.Sort(names)
	return names
}

// flat appends a value, or each of a list and of the lists in it.
func flat(args []any, value any) []any {
	list, ok := value.([]any)
	if !ok {
		return append(args, value)
	}
	for _, x := range list {
		args = flat(args, x)
	}
	return args
}

func (e *evaluation) call(n *ast.CallExpr) (any, error) {
	name := n.Fun.(*ast.Ident).Name
	var args []any
	for _, expr := range n.Args {
		value, err := e.value(expr)
		if err != nil {
			return nil, err
		}
		args = flat(args, value)
	}
	switch name {
	case "count":
		return exactly(float64(len(args))), nil
	case "share":
		for _, value := range args {
			if m, ok := value.(missing); ok {
				return m, nil
			}
		}
		if len(args) == 2 {
			part, ok := args[0].(Number)
			whole, both := args[1].(Number)
			if ok && both {
				return share(part, whole), nil
			}
		}
		return nil, errors.New("share takes a part and the whole: two numbers")
	}
	return reduce(name, args)
}

// known are all names that a path may have, except for properties of searches: those of the files and of figures.
var known = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{"runs": true, "series": true, string(Steps): true}
	for _, k := range figures.Keys() {
		names[strings.ReplaceAll(k, "-", "_")] = true
	}
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(kind reflect.Type) {
		for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice || kind.Kind() == reflect.Map {
			kind = kind.Elem()
		}
		if kind.Kind() != reflect.Struct || seen[kind] {
			return
		}
		seen[kind] = true
		for _, field := range reflect.VisibleFields(kind) {
			if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); tag != "" && tag != "-" {
				names[tag] = true
			}
			walk(field.Type)
		}
	}
	for _, value := range []any{results.Summary{}, results.Run{}, results.Search{}, results.Series{}} {
		walk(reflect.TypeOf(value))
	}
	return names
})

// unknownName is the error about a name that no record has.
func unknownName(name string, properties []results.Property) error {
	all := slices.AppendSeq(format.Strings(properties), maps.Keys(known()))
	slices.Sort(all)
	return quota.Unknown("figure", name, all, "; see docs/metrics.md and results/schema")
}
