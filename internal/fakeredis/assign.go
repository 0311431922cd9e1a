package fakeredis

import (
	"fmt"
	"reflect"

	"github.com/yuin/gopher-lua/ast"
)

// statements is the type of the body of whatever has one.
var statements = reflect.TypeFor[[]ast.Stmt]()

// assignByParts has assignments to several variables, and of "and" and "or" to one, go by way of new variables. As
// gopher-lua 1.1.2 compiles them, an expression sees what the one before it has given to a local variable, and the
// right side of "and" and "or" may not reach one: https://www.lua.org/manual/5.1/manual.html#2.4.3 has all expressions
// evaluated first. In is a part of a syntax tree.
func assignByParts(in reflect.Value) {
	switch in.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !in.IsNil() {
			assignByParts(in.Elem())
		}
	case reflect.Struct:
		for i := range in.NumField() {
			if in.Type().Field(i).IsExported() {
				assignByParts(in.Field(i))
			}
		}
	case reflect.Slice:
		for i := range in.Len() {
			assignByParts(in.Index(i))
			if in.Type() != statements {
				continue
			}
			if assign, ok := in.Index(i).Interface().(*ast.AssignStmt); ok && inParts(assign) {
				in.Index(i).Set(reflect.ValueOf(parts(assign)))
			}
		}
	}
}

// inParts reports whether an assignment may be compiled wrongly.
func inParts(assign *ast.AssignStmt) bool {
	_, logical := assign.Rhs[0].(*ast.LogicalOpExpr)
	return logical || len(assign.Lhs) > 1
}

// parts is a block of single assignments: of the tables and keys that are named on the left, of the values, and then to
// what is on the left, from the last to the first, as Lua 5.1 does it.
func parts(assign *ast.AssignStmt) ast.Stmt {
	block := &ast.DoBlockStmt{}
	block.SetLine(assign.Line())
	// keep gives expressions to as many new variables, or to n of them.
	keep := func(n int, name string, exprs ...ast.Expr) (kept []ast.Expr) {
		local := &ast.LocalAssignStmt{Exprs: exprs}
		local.SetLine(assign.Line())
		for i := range n {
			variable := &ast.IdentExpr{Value: fmt.Sprintf("(%s %d)", name, i)}
			variable.SetLine(assign.Line())
			local.Names = append(local.Names, variable.Value)
			kept = append(kept, variable)
		}
		block.Stmts = append(block.Stmts, local)
		return kept
	}
	targets := make([]ast.Expr, len(assign.Lhs))
	for i, target := range assign.Lhs {
		if element, ok := target.(*ast.AttrGetExpr); ok {
			place := keep(2, fmt.Sprintf("place %d", i), element.Object, element.Key)
			named := &ast.AttrGetExpr{Object: place[0], Key: place[1]}
			named.SetLine(element.Line())
			target = named
		}
		targets[i] = target
	}
	values := keep(len(targets), "value", assign.Rhs...)
	for i := len(targets) - 1; i >= 0; i-- {
		single := &ast.AssignStmt{Lhs: targets[i : i+1], Rhs: values[i : i+1]}
		single.SetLine(assign.Line())
		block.Stmts = append(block.Stmts, single)
	}
	return block
}
