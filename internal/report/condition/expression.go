// Package condition reads conditions on records and decides them: those of gates, of --until and of claims. They
// know intervals, and a third truth value for what the records leave open.
package condition

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
	"strings"
	"sync"

	"github.com/quotabench/quotabench/internal/kit/collect"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/figures"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// Expression is a formula over records. It has the form of one of Go, whose parser reads it: any library would still
// lack intervals and a third truth value.
//
//	stores["three-tier"].throughput / stores["pg-check"].throughput >= 50
//	p99 / reference <= 1.2
//
// A name is a record, whose [ ] take the label of a strategy, which may be left out if there is one only. What follows
// a dot is a figure, or a field of the files. On a list it gives that of each element, and [ ] take texts that tell one
// element from the others. If the expression has a subject, a name is one of its figures.
type Expression struct {
	text string
	node ast.Expr
	// records that are named, and figures of the subject.
	records []string
	figures []string
}

// Subject is what the bare names of an expression are figures of.
type Subject int

// The subjects.
const (
	NoSubject Subject = iota
	Run               // a strategy, over all its rounds
	Search            // a search
)

// Scope is what an expression may name.
type Scope struct {
	// Records are the names of records.
	Records []string
	// Subject has the figures whose names stand alone.
	Subject Subject
	// Properties are those that searches may look for.
	Properties []results.Property
}

// constants are names of numbers. Times are in nanoseconds, as in the files.
var constants = map[string]float64{
	"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9,
	"kB": 1e3, "MB": 1e6,
	"none": 0,
}

// times are the constants that stand behind a time.
var times = []string{"ns", "us", "µs", "ms", "s", "min"}

// point is the name of the value at which a sweep is looked at.
const point = "x"

// reference stands below a fraction line for the same figure of the bare client.
const reference = "reference"

// examples end the error about an expression that cannot be read.
var examples = map[Subject]string{
	Run:    "; give one such as leak<=0 or p99/reference<=1.2",
	Search: "; give one such as leak=none or steps>=9",
}

// Parse reads an expression.
func Parse(text string, scope Scope) (*Expression, error) {
	node, err := parser.ParseExpr(spelled(text, scope.Properties))
	if err != nil {
		if list, ok := errors.AsType[scanner.ErrorList](err); ok {
			err = fmt.Errorf("column %d: %s", list[0].Pos.Column, list[0].Msg)
		}
		return nil, fmt.Errorf("%q is no expression: %w%s", text, err, examples[scope.Subject])
	}
	expression := &Expression{text: strings.Join(strings.Fields(text), " "), node: node}
	if err := expression.check(node, &scope); err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return expression, nil
}

// ParseCondition reads an expression that is true or false.
func ParseCondition(text string, scope Scope) (*Expression, error) {
	expression, err := Parse(text, scope)
	if err != nil {
		return nil, err
	}
	if !decides(expression.node) {
		return nil, fmt.Errorf("%q does not say what is required: give %s=none, or a bound such as %[2]s<=2", text,
			expression.text)
	}
	return expression, nil
}

// decides reports whether a node is true or false.
func decides(node ast.Expr) bool {
	switch n := node.(type) {
	case *ast.ParenExpr:
		return decides(n.X)
	case *ast.UnaryExpr:
		return n.Op == token.NOT
	case *ast.BinaryExpr:
		return slices.Contains(comparisons, n.Op)
	}
	return false
}

// String is the expression as it was written, with single spaces.
func (x *Expression) String() string { return x.text }

// Records are the names of the records that the expression is about.
func (x *Expression) Records() []string { return x.records }

// Properties are those of the subject, a search, that the expression names.
func (x *Expression) Properties() []results.Property {
	properties := make([]results.Property, len(x.figures))
	for i, name := range x.figures {
		properties[i] = results.Property(strings.ReplaceAll(name, "_", "-"))
	}
	return properties
}

// Timed reports whether the expression takes a time or a throughput of its subject, which a simulation has not.
func (x *Expression) Timed() bool {
	return slices.ContainsFunc(x.figures, func(name string) bool {
		figure := figureOf(name)
		return figure != nil && (figure.Counts == figures.Timed || figure.Unit == figures.Nanoseconds)
	})
}

// check refuses what no record could answer.
func (x *Expression) check(node ast.Expr, scope *Scope) error {
	parts := []ast.Expr{}
	switch n := node.(type) {
	case *ast.BasicLit:
		return checkNumber(n)
	case *ast.Ident:
		return x.name(n.Name, scope)
	case *ast.ParenExpr:
		return x.check(n.X, scope)
	case *ast.UnaryExpr:
		if n.Op != token.NOT && n.Op != token.SUB {
			return fmt.Errorf("%s is not known", n.Op)
		}
		return x.check(n.X, scope)
	case *ast.BinaryExpr:
		if !slices.Contains(arithmetic, n.Op) && !slices.Contains(comparisons, n.Op) {
			return fmt.Errorf("%s is not known", n.Op)
		}
		if byReference(n) && scope.Subject == Run {
			return x.reference(n, scope)
		}
		if err := checkTime(n); err != nil {
			return err
		}
		parts = append(parts, n.X, n.Y)
	case *ast.SelectorExpr:
		name := n.Sel.Name
		property := results.Property(strings.ReplaceAll(name, "_", "-"))
		if !known()[name] && !ofSeries(n.X) && !slices.Contains(scope.Properties, property) {
			return unknownName(name, scope.Properties)
		}
		parts = append(parts, n.X)
	case *ast.IndexExpr:
		if !isText(n.Index) {
			return errNoKeys
		}
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
	return x.checkAll(parts, scope)
}

func (x *Expression) checkAll(parts []ast.Expr, scope *Scope) error {
	for _, expr := range parts {
		if err := x.check(expr, scope); err != nil {
			return err
		}
	}
	return nil
}

// isText reports whether a node may be a text, as what stands in [ ] is: numbers and what is made of them are none.
func isText(node ast.Expr) bool {
	switch n := node.(type) {
	case *ast.ParenExpr:
		return isText(n.X)
	case *ast.BasicLit:
		return n.Kind == token.STRING
	case *ast.UnaryExpr, *ast.BinaryExpr, *ast.CallExpr:
		return false
	}
	return true
}

// checkNumber refuses a number that is too large for one.
func checkNumber(n *ast.BasicLit) error {
	_, err := literal(n)
	return err
}

// checkTime refuses the comparison of a figure that is no time with one.
func checkTime(n *ast.BinaryExpr) error {
	ident, ok := n.X.(*ast.Ident)
	if !ok || !slices.Contains(comparisons, n.Op) {
		return nil
	}
	figure := figureOf(ident.Name)
	limit, product := n.Y.(*ast.BinaryExpr)
	if figure == nil || figure.Unit == figures.Nanoseconds || !product {
		return nil
	}
	if unit, ok := limit.Y.(*ast.Ident); ok && slices.Contains(times, unit.Name) {
		return fmt.Errorf("%s is no time: leave out %s", figure.Key, unit.Name)
	}
	return nil
}

// ofSeries reports whether what follows may be a counter of the strategy's, whose name no file form knows.
func ofSeries(node ast.Expr) bool {
	expr, ok := node.(*ast.SelectorExpr)
	return ok && expr.Sel.Name == "series"
}

var (
	arithmetic  = []token.Token{token.ADD, token.SUB, token.MUL, token.QUO}
	comparisons = []token.Token{
		token.LAND, token.LOR, token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ,
	}
)

// name checks a name that stands alone.
func (x *Expression) name(name string, scope *Scope) error {
	_, constant := constants[name]
	if slices.Contains(scope.Records, name) {
		x.records = collect.Union(x.records, name)
		return nil
	}
	if constant || name == point && scope.Subject == NoSubject {
		return nil
	}
	if scope.Subject == NoSubject {
		return quota.Unknown("run", name, scope.Records, "")
	}
	keys := scope.keys()
	if !slices.ContainsFunc(keys, func(key string) bool { return identifier(key) == name }) {
		return quota.Unknown("field", name, keys, "")
	}
	x.figures = append(x.figures, name)
	return nil
}

// keys are the names of the subject's figures.
func (s *Scope) keys() []string {
	if s.Subject == Search {
		return SearchFields(s.Properties)
	}
	return figures.Keys()
}

// byReference reports whether a node divides by the same figure of the bare client.
func byReference(n *ast.BinaryExpr) bool {
	ident, ok := n.Y.(*ast.Ident)
	return ok && n.Op == token.QUO && ident.Name == reference
}

// reference checks the quotient of a figure and the same one of the bare client.
func (x *Expression) reference(n *ast.BinaryExpr, scope *Scope) error {
	ident, ok := n.X.(*ast.Ident)
	if !ok {
		return fmt.Errorf("%s stands below a single figure, as in p99/%[1]s", reference)
	}
	if err := x.name(ident.Name, scope); err != nil {
		return err
	}
	if ident.Name != throughput && bareFigure(ident.Name) == nil {
		return fmt.Errorf("the reference loop has no %s: it has throughput and percentiles", ident.Name)
	}
	return nil
}

// throughput is the figure whose quotient with that of the bare client is a figure, too.
const throughput = "throughput"

// bareFigure is the figure of the bare client that corresponds to one of a strategy, or nil.
func bareFigure(name string) *figures.Figure {
	figure := figureOf(name)
	if figure == nil {
		return nil
	}
	return figures.Lookup("bare." + figure.Key)
}

// functions that expressions may call.
func functions() []string {
	names := slices.AppendSeq([]string{"share", "count"}, maps.Keys(reductions))
	slices.Sort(names)
	return names
}

// known are all names that a path may have, except for properties of searches: those of the files and of figures.
var known = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{"runs": true, "series": true, string(Steps): true, string(Counterexamples): true}
	for _, key := range figures.Keys() {
		names[identifier(key)] = true
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
