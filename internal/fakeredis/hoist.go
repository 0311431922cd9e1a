package fakeredis

import (
	"reflect"
	"slices"

	"github.com/yuin/gopher-lua/ast"
)

// unchanging are globals that no script can change, and shared the libraries of which it can change no field.
var (
	unchanging = []string{"KEYS", "ARGV", "tonumber", "tostring", "type", "pairs", "ipairs", "unpack"}
	shared     = []string{"redis", "math", "string", "table"}
)

// hoist has a script look each of its globals up once, and not for each use: a global is read through tables that
// refuse to be written. What comes back is a chunk that returns the script as a function, with the globals as its
// variables:
//
//	local tonumber, redis.call = tonumber, redis.call
//	return function(...) SCRIPT end
func hoist(chunk []ast.Stmt) []ast.Stmt {
	h := hoisting{exprs: map[string]ast.Expr{}}
	h.bind(reflect.ValueOf(chunk))
	h.replace(reflect.ValueOf(&chunk).Elem())
	script := &ast.FunctionExpr{ParList: &ast.ParList{HasVargs: true}, Stmts: chunk}
	result := &ast.ReturnStmt{Exprs: []ast.Expr{script}}
	if len(h.names) == 0 {
		return []ast.Stmt{result}
	}
	variables := &ast.LocalAssignStmt{Names: h.names}
	for _, name := range h.names {
		variables.Exprs = append(variables.Exprs, h.exprs[name])
	}
	return []ast.Stmt{variables, result}
}

// hoisting is what is known of a script.
type hoisting struct {
	bound []string // names that the script gives a meaning of its own, somewhere
	names []string // of the variables, by their first use
	exprs map[string]ast.Expr
}

// bind notes the names that the script assigns to or declares.
func (h *hoisting) bind(in reflect.Value) {
	visit(in, func(part reflect.Value) {
		switch node := part.Interface().(type) {
		case *ast.AssignStmt:
			for _, target := range node.Lhs {
				h.bound = append(h.bound, root(target))
			}
		case *ast.FuncDefStmt:
			h.bound = append(h.bound, root(node.Name.Func), root(node.Name.Receiver))
		case *ast.LocalAssignStmt:
			h.bound = append(h.bound, node.Names...)
		case *ast.GenericForStmt:
			h.bound = append(h.bound, node.Names...)
		case *ast.NumberForStmt:
			h.bound = append(h.bound, node.Name)
		case *ast.FunctionExpr:
			h.bound = append(h.bound, node.ParList.Names...)
		}
	})
}

// root is the variable that an expression begins with, or "".
func root(expr ast.Expr) string {
	for {
		switch node := expr.(type) {
		case *ast.IdentExpr:
			return node.Value
		case *ast.AttrGetExpr:
			expr = node.Object
		default:
			return ""
		}
	}
}

// replace puts variables where the script reads globals.
func (h *hoisting) replace(in reflect.Value) {
	visit(in, func(part reflect.Value) {
		if part.Kind() != reflect.Interface {
			return
		}
		name := h.global(part.Interface())
		if name == "" {
			return
		}
		global := part.Interface().(ast.Expr)
		if h.exprs[name] == nil {
			h.names = append(h.names, name)
			h.exprs[name] = global
		}
		variable := &ast.IdentExpr{Value: name}
		variable.SetLine(global.Line())
		part.Set(reflect.ValueOf(variable))
	})
}

// mostHoisted is how many variables a function of Lua may take from outside, less what a script's own functions need.
const mostHoisted = 40

// global is the name of the variable for an expression, or "" if that is no unchanging global.
func (h *hoisting) global(expr any) string {
	name := ""
	switch node := expr.(type) {
	case *ast.IdentExpr:
		if slices.Contains(unchanging, node.Value) && !slices.Contains(h.bound, node.Value) {
			name = node.Value
		}
	case *ast.AttrGetExpr:
		library, ok := node.Object.(*ast.IdentExpr)
		field, named := node.Key.(*ast.StringExpr)
		if ok && named && slices.Contains(shared, library.Value) && !slices.Contains(h.bound, library.Value) {
			name = library.Value + "." + field.Value
		}
	}
	if h.exprs[name] == nil && len(h.names) == mostHoisted {
		return ""
	}
	return name
}

// visit calls f with each part of a syntax tree, what is outside first.
func visit(in reflect.Value, f func(part reflect.Value)) {
	switch in.Kind() {
	case reflect.Interface:
		if in.IsNil() {
			return
		}
		f(in)
		visit(in.Elem(), f)
	case reflect.Pointer:
		if !in.IsNil() {
			f(in)
			visit(in.Elem(), f)
		}
	case reflect.Struct:
		for i := range in.NumField() {
			if in.Type().Field(i).IsExported() {
				visit(in.Field(i), f)
			}
		}
	case reflect.Slice:
		for i := range in.Len() {
			visit(in.Index(i), f)
		}
	}
}
