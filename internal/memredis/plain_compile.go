package memredis

import (
	"math"

	"github.com/yuin/gopher-lua/ast"
)

// notPlain is thrown where a script turns out to need a Lua machine.
type notPlain struct{}

// compiler makes closures of a plain script's syntax tree.
type compiler struct {
	locals []string // in scope, by slot
	most   int
}

func (c *compiler) declare(name string) int {
	c.locals = append(c.locals, name)
	c.most = max(c.most, len(c.locals))
	return len(c.locals) - 1
}

// slot of a local, or -1.
func (c *compiler) slot(name string) int {
	for i := len(c.locals) - 1; i >= 0; i-- {
		if c.locals[i] == name {
			return i
		}
	}
	return -1
}

// global reports whether e is the name of a global.
func (c *compiler) global(e ast.Expr, name string) bool {
	id, ok := e.(*ast.IdentExpr)
	return ok && id.Value == name && c.slot(name) < 0
}

// member reports whether e is a field of a global table.
func (c *compiler) member(e ast.Expr, table, field string) bool {
	get, ok := e.(*ast.AttrGetExpr)
	if !ok || !c.global(get.Object, table) {
		return false
	}
	key, ok := get.Key.(*ast.StringExpr)
	return ok && key.Value == field
}

func (c *compiler) block(stmts []ast.Stmt) []statement {
	outer := len(c.locals)
	body := make([]statement, 0, len(stmts))
	for _, s := range stmts {
		body = append(body, c.statement(s))
	}
	c.locals = c.locals[:outer]
	return body
}

func (c *compiler) statement(s ast.Stmt) statement {
	switch s := s.(type) {
	case *ast.LocalAssignStmt:
		return c.local(s)
	case *ast.AssignStmt:
		return c.assign(s)
	case *ast.FuncCallStmt:
		call := c.expression(s.Expr)
		return func(f *frame) bool { call(f); return false }
	case *ast.DoBlockStmt:
		body := c.block(s.Stmts)
		return func(f *frame) bool { return runBlock(f, body) }
	case *ast.IfStmt:
		holds, yes, no := c.condition(s.Condition), c.block(s.Then), c.block(s.Else)
		return func(f *frame) bool {
			if holds(f) {
				return runBlock(f, yes)
			}
			return runBlock(f, no)
		}
	case *ast.ReturnStmt:
		switch len(s.Exprs) {
		case 0:
			return func(*frame) bool { return true }
		case 1:
			result := c.expression(s.Exprs[0])
			return func(f *frame) bool { f.result = result(f); return true }
		}
	}
	panic(notPlain{})
}

// local declares its names after its expressions: those see what was before.
func (c *compiler) local(s *ast.LocalAssignStmt) statement {
	if len(s.Names) != len(s.Exprs) {
		panic(notPlain{})
	}
	values := c.expressions(s.Exprs)
	first := len(c.locals)
	for _, name := range s.Names {
		c.declare(name)
	}
	if len(values) == 1 {
		value := values[0]
		return func(f *frame) bool { f.slots[first] = value(f); return false }
	}
	return func(f *frame) bool {
		for i, value := range values {
			f.slots[first+i] = value(f)
		}
		return false
	}
}

func (c *compiler) assign(s *ast.AssignStmt) statement {
	if len(s.Lhs) != 1 || len(s.Rhs) != 1 {
		panic(notPlain{})
	}
	id, ok := s.Lhs[0].(*ast.IdentExpr)
	if !ok || c.slot(id.Value) < 0 {
		panic(notPlain{})
	}
	slot, value := c.slot(id.Value), c.expression(s.Rhs[0])
	return func(f *frame) bool { f.slots[slot] = value(f); return false }
}

func (c *compiler) expressions(list []ast.Expr) []expression {
	out := make([]expression, len(list))
	for i, e := range list {
		out[i] = c.expression(e)
	}
	return out
}

func constant(v luaValue) expression { return func(*frame) luaValue { return v } }

func (c *compiler) expression(e ast.Expr) expression {
	switch e := e.(type) {
	case *ast.NilExpr:
		return constant(luaValue{})
	case *ast.FalseExpr, *ast.TrueExpr:
		_, yes := e.(*ast.TrueExpr)
		return constant(truthValue(yes))
	case *ast.NumberExpr:
		if n, ok := parseLua(e.Value); ok {
			return constant(luaValue{kind: luaNumber, number: n})
		}
	case *ast.StringExpr:
		return constant(luaValue{kind: luaString, text: e.Value})
	case *ast.IdentExpr:
		if slot := c.slot(e.Value); slot >= 0 {
			return func(f *frame) luaValue { return f.slots[slot] }
		}
	case *ast.AttrGetExpr:
		return c.index(e)
	case *ast.FuncCallExpr:
		return c.call(e)
	case *ast.TableExpr:
		return c.list(e)
	case *ast.LogicalOpExpr:
		left, right, stop := c.expression(e.Lhs), c.expression(e.Rhs), e.Operator == "or"
		return func(f *frame) luaValue {
			if v := left(f); v.truth() == stop {
				return v
			}
			return right(f)
		}
	case *ast.UnaryNotOpExpr:
		operand := c.expression(e.Expr)
		return func(f *frame) luaValue { v := operand(f); return truthValue(!v.truth()) }
	case *ast.UnaryMinusOpExpr:
		operand := c.expression(e.Expr)
		return func(f *frame) luaValue {
			v := operand(f)
			return luaValue{kind: luaNumber, number: -v.arithmetic()}
		}
	case *ast.RelationalOpExpr:
		holds := c.relation(e)
		return func(f *frame) luaValue { return truthValue(holds(f)) }
	case *ast.ArithmeticOpExpr:
		return c.arithmetic(e)
	}
	panic(notPlain{})
}

// place is the constant number that a list is indexed by.
func place(e *ast.AttrGetExpr) (n int64, ok bool) {
	number, ok := e.Key.(*ast.NumberExpr)
	if !ok {
		return 0, false
	}
	n, ok = parseInt(number.Value)
	return n, ok && n >= 1
}

// index is KEYS[1], ARGV[1], or an element of a list in a local.
func (c *compiler) index(e *ast.AttrGetExpr) expression {
	n, ok := place(e)
	if !ok {
		panic(notPlain{})
	}
	given := func(s []string) luaValue {
		if n > int64(len(s)) {
			return luaValue{}
		}
		return luaValue{kind: luaString, text: s[n-1]}
	}
	switch {
	case c.global(e.Object, "KEYS"):
		return func(f *frame) luaValue { return given(f.keys) }
	case c.global(e.Object, "ARGV"):
		return func(f *frame) luaValue { return given(f.argv) }
	}
	object := c.expression(e.Object)
	return func(f *frame) luaValue {
		v := object(f)
		switch {
		case v.kind == luaStatus || v.kind == luaString || v.kind == luaDigits || v.kind == luaList && n > int64(len(v.list)):
			return luaValue{}
		case v.kind != luaList:
			throw("ERR user_script: attempt to index something that is not a table")
		}
		return v.list[n-1]
	}
}

func (c *compiler) list(e *ast.TableExpr) expression {
	items := make([]expression, len(e.Fields))
	for i, field := range e.Fields {
		if field.Key != nil {
			panic(notPlain{})
		}
		items[i] = c.expression(field.Value)
	}
	return func(f *frame) luaValue {
		list := f.list(len(items))
		for i, item := range items {
			list[i] = item(f)
		}
		return luaValue{kind: luaList, list: list}
	}
}

// call is one of the functions that a plain script may use. Each gives one value.
func (c *compiler) call(e *ast.FuncCallExpr) expression {
	if e.Receiver != nil || len(e.Args) == 0 {
		panic(notPlain{})
	}
	args := c.expressions(e.Args)
	switch {
	case c.member(e.Func, "redis", "call"):
		var known *command
		if name, ok := e.Args[0].(*ast.StringExpr); ok {
			known = lookup(name.Value)
		}
		given := c.arguments(e.Args, args)
		return func(f *frame) luaValue {
			base := len(f.args)
			for i := range given {
				given[i].push(f)
			}
			return f.call(known, base)
		}
	case len(args) == 1 && c.global(e.Func, "tonumber"):
		return func(f *frame) luaValue {
			v := args[0](f)
			switch v.kind {
			case luaNumber:
				return v
			case luaDigits:
				return luaValue{kind: luaNumber, number: v.number}
			case luaString:
				if n, ok := parseLua(v.text); ok {
					return luaValue{kind: luaNumber, number: n}
				}
			}
			return luaValue{}
		}
	case len(args) == 1 && c.member(e.Func, "math", "floor"):
		return func(f *frame) luaValue {
			v := args[0](f)
			return luaValue{kind: luaNumber, number: math.Floor(v.arithmetic())}
		}
	}
	panic(notPlain{})
}

// argument of a command.
type argument struct {
	value expression
	text  string // where it is constant
	key   int64  // where it is one of KEYS, counted from 1
}

func (c *compiler) arguments(list []ast.Expr, values []expression) []argument {
	out := make([]argument, len(list))
	for i, e := range list {
		out[i].value = values[i]
		switch e := e.(type) {
		case *ast.StringExpr:
			out[i] = argument{text: e.Value}
		case *ast.AttrGetExpr:
			if n, ok := place(e); ok && c.global(e.Object, "KEYS") {
				out[i].key = n
			}
		}
	}
	return out
}

// push puts an argument on the frame's stack.
func (a *argument) push(f *frame) {
	switch {
	case a.value == nil:
		f.args = append(f.args, a.text)
	case a.key > 0 && a.key <= int64(len(f.keys)):
		f.args = append(f.args, f.keys[a.key-1])
	default:
		f.push(a.value(f))
	}
}

// condition is an expression of which only the truth matters.
func (c *compiler) condition(e ast.Expr) func(f *frame) bool {
	switch e := e.(type) {
	case *ast.RelationalOpExpr:
		return c.relation(e)
	case *ast.UnaryNotOpExpr:
		holds := c.condition(e.Expr)
		return func(f *frame) bool { return !holds(f) }
	case *ast.LogicalOpExpr:
		left, right := c.condition(e.Lhs), c.condition(e.Rhs)
		if e.Operator == "or" {
			return func(f *frame) bool { return left(f) || right(f) }
		}
		return func(f *frame) bool { return left(f) && right(f) }
	}
	value := c.expression(e)
	return func(f *frame) bool { v := value(f); return v.truth() }
}

func (c *compiler) relation(e *ast.RelationalOpExpr) func(f *frame) bool {
	left, right, operator := c.expression(e.Lhs), c.expression(e.Rhs), e.Operator
	switch operator {
	case "==", "~=":
		// Two lists are equal only where they are the same one, which is not known.
		for _, side := range []ast.Expr{e.Lhs, e.Rhs} {
			switch side.(type) {
			case *ast.NumberExpr, *ast.StringExpr, *ast.NilExpr, *ast.TrueExpr, *ast.FalseExpr:
				equal := operator == "=="
				return func(f *frame) bool { return same(left(f), right(f)) == equal }
			}
		}
		panic(notPlain{})
	}
	var numbers func(a, b float64) bool
	var texts func(order int) bool
	switch operator {
	case "<":
		numbers, texts = func(a, b float64) bool { return a < b }, func(order int) bool { return order < 0 }
	case "<=":
		numbers, texts = func(a, b float64) bool { return a <= b }, func(order int) bool { return order <= 0 }
	case ">":
		numbers, texts = func(a, b float64) bool { return a > b }, func(order int) bool { return order > 0 }
	default:
		numbers, texts = func(a, b float64) bool { return a >= b }, func(order int) bool { return order >= 0 }
	}
	return func(f *frame) bool {
		a := left(f)
		b := right(f)
		if a.kind == luaNumber && b.kind == luaNumber {
			return numbers(a.number, b.number)
		}
		return texts(compareTexts(a, b))
	}
}

func (c *compiler) arithmetic(e *ast.ArithmeticOpExpr) expression {
	left, right := c.expression(e.Lhs), c.expression(e.Rhs)
	var apply func(a, b float64) float64
	switch e.Operator {
	case "+":
		apply = func(a, b float64) float64 { return a + b }
	case "-":
		apply = func(a, b float64) float64 { return a - b }
	case "*":
		apply = func(a, b float64) float64 { return a * b }
	case "/":
		apply = func(a, b float64) float64 { return a / b }
	default:
		panic(notPlain{})
	}
	return func(f *frame) luaValue {
		a := left(f)
		b := right(f)
		return luaValue{kind: luaNumber, number: apply(a.arithmetic(), b.arithmetic())}
	}
}
