package condition

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"reflect"
	"strconv"

	"github.com/quotabench/quotabench/internal/kit/stat"
	"github.com/quotabench/quotabench/results"
)

// Evaluation decides expressions by records.
type Evaluation struct {
	// Records by their names.
	Records map[string]*Record
	// Tolerance is the share of a limit within which a figure is close to it.
	Tolerance float64

	// point is the value of the swept parameter; nil if there is no sweep.
	point any
	// subject is what bare names are figures of; nil if there is none.
	subject any
	// first is the first comparison that was made.
	first *comparison
}

// comparison is what was compared, and with what.
type comparison struct {
	left, right any
	node        ast.Expr // of the left side
}

// At is the evaluation at a value of a sweep, whose record has the name.
func (e *Evaluation) At(sweep, value string) *Evaluation {
	record := *e.Records[sweep]
	record.point = value
	at := &Evaluation{Records: maps.Clone(e.Records), Tolerance: e.Tolerance, point: value}
	at.Records[sweep] = &record
	if number, ok := stat.ParseValue(value); ok {
		at.point = exactly(number)
	}
	return at
}

// OfRun evaluates figures of a strategy, which stand for themselves. The rounds are those of the file.
func OfRun(file *results.File, summary *results.Summary) *Evaluation {
	record := &Record{File: file, anyRounds: true}
	return &Evaluation{subject: object{reflect.ValueOf(summary), record}}
}

// OfSearch evaluates figures of a search.
func OfSearch(search *results.Search) *Evaluation {
	return &Evaluation{subject: object{reflect.ValueOf(search), new(Record)}}
}

// Truth of an expression. An error says what is wrong with it.
func (e *Evaluation) Truth(x *Expression) (Truth, error) { return e.truth(x.node) }

// Value of an expression, if it is a number. An error says what is wrong with it.
func (e *Evaluation) Value(x *Expression) (Number, bool, error) {
	value, err := e.value(x.node)
	number, ok := value.(Number)
	return number, ok, err
}

// Compared are both sides of the first comparison that was made, if they are numbers.
func (e *Evaluation) Compared() (left, right *Number) {
	if e.first == nil {
		return nil, nil
	}
	return numberOf(e.first.left), numberOf(e.first.right)
}

// numberOf is a value that is a number, or nil.
func numberOf(value any) *Number {
	number, ok := value.(Number)
	if !ok {
		return nil
	}
	return &number
}

// Text is the value of an expression for readers, or that of the left side of the first comparison if x is nil; empty
// if there is none.
func (e *Evaluation) Text(x *Expression) (string, error) {
	var value any
	switch {
	case x != nil:
		var err error
		value, err = e.value(x.node)
		if err != nil {
			return "", err
		}
	case e.first != nil:
		value = e.first.left
	}
	switch shown := value.(type) {
	case Number:
		return shown.Text(), nil
	case string:
		return shown, nil
	case Truth:
		return shown.String(), nil
	}
	return "", nil
}

// Words are an expression for readers: what it shows. If x is nil it is the left side of the first comparison.
func (e *Evaluation) Words(x *Expression) string {
	if x != nil {
		return words(x.node, e.Records)
	}
	return words(e.first.node, e.Records)
}

// value of a node: a number, a text, a truth, a part of a record, a list or what is missing.
func (e *Evaluation) value(node ast.Expr) (any, error) {
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

// named is the value of a name that stands alone.
func (e *Evaluation) named(name string) any {
	if record := e.Records[name]; record != nil {
		return record
	}
	if name == point && e.point != nil {
		return e.point
	}
	if number, ok := constants[name]; ok {
		return exactly(number)
	}
	if subject, ok := e.subject.(object); ok {
		return subject.sel(name)
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

func (e *Evaluation) binary(n *ast.BinaryExpr) (any, error) {
	if n.Op == token.LAND || n.Op == token.LOR {
		return e.both(n)
	}
	left, err := e.value(n.X)
	if err != nil {
		return nil, err
	}
	if e.subject != nil && byReference(n) {
		return e.byReference(n.X.(*ast.Ident).Name, left)
	}
	right, err := e.value(n.Y)
	if err != nil {
		return nil, err
	}
	switch n.Op {
	case token.ADD, token.SUB, token.MUL, token.QUO:
		return compute(n.Op.String(), left, right)
	}
	if e.first == nil {
		e.first = &comparison{left, right, n.X}
	}
	return compare(n.Op.String(), left, right, e.Tolerance)
}

// both is the truth of two conditions, together or of one of them.
func (e *Evaluation) both(n *ast.BinaryExpr) (any, error) {
	left, err := e.truth(n.X)
	if err != nil {
		return nil, err
	}
	right, err := e.truth(n.Y)
	return join(n.Op == token.LAND, left, right), err
}

// byReference is a figure of the subject divided by the same one of the bare client.
func (e *Evaluation) byReference(name string, value any) (any, error) {
	if name == throughput { // the quotient of the same rounds is a figure itself
		return e.named("ratio"), nil
	}
	return compute("/", value, e.named(identifier(bareFigure(name).Key)))
}

// truth of a condition.
func (e *Evaluation) truth(node ast.Expr) (Truth, error) {
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

func (e *Evaluation) index(expr ast.Expr, at []ast.Expr) (any, error) {
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

func (e *Evaluation) call(n *ast.CallExpr) (any, error) {
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
		return shareOf(args)
	}
	return reduce(name, args)
}

// shareOf is the share that the first of two numbers is of the second.
func shareOf(args []any) (any, error) {
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
