package fakeredis

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// libraries are those that Redis offers to scripts, and the table does not.
var libraries = []string{onMini, "cmsgpack", "bit", "struct"}

// onMini is the one that miniredis has.
const onMini = "cjson"

// libraryPrefix begins what [Redis.Unknown] says of a library.
const libraryPrefix = "script library "

// machine runs scripts in one Lua state, which it keeps.
type machine struct {
	lua     *lua.LState
	carry   func(args []string) Reply // carries out a script's command
	lacks   func(library string)      // is told of a library that a script looks for
	running *lua.LFunction            // the script that runs, or ran last
	given   [2]*lua.LTable            // KEYS and ARGV
	args    []string                  // of its last command, which no command keeps
}

// removed are globals, or functions of math, that reach outside of the table, or differ
// from run to run.
var removed = []string{"dofile", "loadfile", "require", "module", "print", "newproxy", "collectgarbage", "random",
	"randomseed"}

// newMachine makes the Lua state, with what Redis offers to scripts. They cannot change
// it: what is global is read through tables that refuse to be written.
func newMachine(carry func(args []string) Reply, lacks func(library string)) *machine {
	lState := lua.NewState(lua.Options{SkipOpenLibs: true})
	m := &machine{lua: lState, carry: carry, lacks: lacks}
	for _, lib := range []struct {
		name string
		open lua.LGFunction
	}{{lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}, {lua.StringLibName, lua.OpenString},
		{lua.MathLibName, lua.OpenMath}} {
		lState.Push(lState.NewFunction(lib.open))
		lState.Push(lua.LString(lib.name))
		lState.Call(1, 0)
	}
	mathTable := lState.GetGlobal(lua.MathLibName).(*lua.LTable)
	for _, name := range removed {
		lState.SetGlobal(name, lua.LNil)
		mathTable.RawSetString(name, lua.LNil)
	}
	wholeNumbers(lState)
	lState.SetGlobal("redis", m.library())
	for i, name := range []string{"KEYS", "ARGV"} {
		m.given[i] = lState.NewTable()
		lState.SetGlobal(name, m.given[i])
	}
	globals := lState.Get(lua.GlobalsIndex).(*lua.LTable)
	lState.SetMetatable(globals, m.lacking())
	for _, name := range []string{lua.TabLibName, lua.StringLibName, lua.MathLibName, "redis"} {
		lState.SetGlobal(name, m.locked(lState.GetGlobal(name)))
	}
	lState.Env = m.locked(globals)
	return m
}

// wholeNumbers replaces tonumber: the library's own reads whole numbers as 64 bits, but Lua has
// doubles only.
func wholeNumbers(lState *lua.LState) {
	library := lState.GetGlobal("tonumber")
	lState.SetGlobal("tonumber", lState.NewFunction(func(L *lua.LState) int {
		if L.GetTop() == 1 {
			switch v := L.Get(1).(type) {
			case lua.LString:
				L.Push(lua.LNil)
				if n, ok := parseLua(string(v)); ok {
					L.Replace(-1, lua.LNumber(n))
				}
				return 1
			case lua.LNumber:
				return 1 // which is what is on top
			}
		}
		n := L.GetTop()
		L.Insert(library, 1)
		L.Call(n, 1)
		return 1
	}))
}

// parseLua is tonumber of a string.
func parseLua(text string) (float64, bool) {
	if len(text) < 16 { // which a double holds exactly
		if n, ok := parseShort(text); ok {
			return float64(n), true
		}
	}
	n, ok := parseFloat(text).(lua.LNumber)
	return float64(n), ok
}

// library is the table redis.
func (m *machine) library() *lua.LTable {
	lState := m.lua
	redis := lState.NewTable()
	redis.RawSetString("call", lState.NewFunction(func(L *lua.LState) int { return m.call(L, true) }))
	redis.RawSetString("pcall", lState.NewFunction(func(L *lua.LState) int { return m.call(L, false) }))
	redis.RawSetString("sha1hex", lState.NewFunction(func(L *lua.LState) int {
		L.Push(lua.LString(SHA1(L.CheckString(1))))
		return 1
	}))
	for _, x := range []string{"error_reply", "status_reply"} {
		field := map[string]string{"error_reply": "err", "status_reply": "ok"}[x]
		redis.RawSetString(x, lState.NewFunction(func(L *lua.LState) int {
			text := L.CheckString(1)
			if field == "err" && !strings.Contains(text, " ") {
				text = "ERR " + text // without a code of its own
			}
			table := L.NewTable()
			table.RawSetString(field, lua.LString(text))
			L.Push(table)
			return 1
		}))
	}
	redis.RawSetString("log", lState.NewFunction(func(*lua.LState) int { return 0 }))
	redis.RawSetString("replicate_commands", lState.NewFunction(func(L *lua.LState) int { L.Push(lua.LTrue); return 1 }))
	for i, level := range []string{"LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"} {
		redis.RawSetString(level, lua.LNumber(i))
	}
	return redis
}

// lacking is the metatable of the globals, for names that are none of them.
// A script that needs one of these runs on miniredis, or nowhere: an error of every call
// would be taken for the strategy's own.
func (m *machine) lacking() *lua.LTable {
	lState := m.lua
	meta := lState.NewTable()
	meta.RawSetString("__index", lState.NewFunction(func(L *lua.LState) int {
		name := L.CheckString(2)
		if !slices.Contains(libraries, name) {
			L.Error(lua.LString("Script attempted to access nonexistent global variable '"+name+"'"), 2)
		}
		m.lacks(name)
		L.Push(lua.LNil)
		return 1
	}))
	return meta
}

// locked is a table through which another one is read, and not written.
func (m *machine) locked(content lua.LValue) *lua.LTable {
	meta := m.lua.NewTable()
	front := m.lua.NewTable()
	meta.RawSetString("__index", content)
	meta.RawSetString("__newindex", m.lua.NewFunction(func(lState *lua.LState) int {
		lState.Error(lua.LString("Attempt to modify a readonly table"), 2)
		return 0
	}))
	m.lua.SetMetatable(front, meta)
	return front
}

// missing is the library that is said to be missing when the running script looks for
// one: another that it names, too, if miniredis has only the first.
func (m *machine) missing(name string) string {
	if name != onMini || m.running == nil {
		return name
	}
	for _, other := range libraries {
		if other != onMini && names(m.running.Proto, other) {
			return other
		}
	}
	return name
}

// names reports whether a text is among the constants of a script, as the names of its
// globals are.
func names(proto *lua.FunctionProto, text string) bool {
	return slices.Contains(proto.Constants, lua.LValue(lua.LString(text))) ||
		slices.ContainsFunc(proto.FunctionPrototypes, func(functionProto *lua.FunctionProto) bool {
			return names(functionProto, text)
		})
}

// function is a compiled script as a function of this state; see [hoist].
func (m *machine) function(proto *lua.FunctionProto) *lua.LFunction {
	m.lua.Push(m.lua.NewFunctionFromProto(proto))
	m.lua.Call(0, 1)
	function := m.lua.CheckFunction(-1)
	m.lua.SetTop(0)
	return function
}

// run runs a script. What it changed before an error stays, as in Redis.
func (m *machine) run(function *lua.LFunction, keys, argv []string) Reply {
	lState := m.lua
	m.running = function
	fill(m.given[0], keys)
	fill(m.given[1], argv)
	lState.Push(function)
	if err := lState.PCall(0, 1, nil); err != nil {
		lState.SetTop(0)
		return scriptError(err)
	}
	reply := fromLua(lState.Get(-1))
	lState.SetTop(0)
	return reply
}

func scriptError(err error) Reply {
	if apiError, ok := errors.AsType[*lua.ApiError](err); ok {
		if table, ok := apiError.Object.(*lua.LTable); ok {
			if text, ok := table.RawGetString("err").(lua.LString); ok {
				return fault(oneLine.Replace(string(text)))
			}
		}
		return fault("ERR " + strings.Join(strings.Fields(apiError.Object.String()), " "))
	}
	return fault("ERR " + err.Error())
}

// fill has a table hold a list. That of the last call serves again: a script
// is over when the next one begins, and two tables less per call count.
func fill(list *lua.LTable, texts []string) {
	for i, n := len(texts)+1, list.Len(); i <= n; i++ {
		list.RawSetInt(i, lua.LNil)
	}
	for i, text := range texts {
		if list.RawGetInt(i+1) != lua.LValue(lua.LString(text)) { // most calls are about one key
			list.RawSetInt(i+1, lua.LString(text))
		}
	}
}

// call is redis.call and redis.pcall.
func (m *machine) call(lState *lua.LState, raise bool) int {
	n := lState.GetTop()
	fail := func(reply Reply) int {
		table := lState.NewTable()
		table.RawSetString("err", lua.LString(reply.Text))
		if raise {
			lState.Error(table, 1)
		}
		lState.Push(table)
		return 1
	}
	if n == 0 {
		return fail(fault("ERR Please specify at least one argument for this redis.call() call"))
	}
	args := slices.Grow(m.args[:0], n)[:n]
	m.args = args
	for i := range args {
		switch v := lState.Get(i + 1).(type) {
		case lua.LString:
			args[i] = string(v)
		case lua.LNumber:
			args[i] = luaNumber(float64(v))
		default:
			return fail(fault("ERR Lua redis lib command arguments must be strings or integers"))
		}
	}
	r := m.carry(args)
	if r.Kind == Err {
		return fail(r)
	}
	lState.Push(m.toLua(r))
	return 1
}

// fromScript carries out a script's command.
func (t *Table) fromScript(args []string) Reply {
	switch command := lookup(args[0]); {
	case command == nil:
		t.Do(args) // which notes that there is no such command
		return unknownToScript
	case command.has(unscripted):
		return forbiddenToScript
	default:
		return t.carryOut(command, args)
	}
}

var (
	unknownToScript   = fault("ERR Unknown Redis command called from script")
	forbiddenToScript = fault("ERR This Redis command is not allowed from script")
)

// parseFloat is tonumber of a string that is not a whole number in decimal.
func parseFloat(text string) lua.LValue {
	text = strings.Trim(text, " \t\n\v\f\r")
	if hex := strings.TrimPrefix(strings.ToLower(text), "0x"); len(hex) < len(text) {
		if n, err := strconv.ParseUint(hex, 16, 64); err == nil {
			return lua.LNumber(n)
		}
		return lua.LNil
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || strings.Contains(text, "_") {
		return lua.LNil
	}
	return lua.LNumber(value)
}

// luaNumber is how a number reaches a command: Redis prints it with 17 digits.
func luaNumber(value float64) string {
	if value == math.Trunc(value) && math.Abs(value) < 1e15 && (value != 0 || !math.Signbit(value)) {
		return strconv.FormatInt(int64(value), 10)
	}
	return cFormat(value)
}

// cFormat is "%.17g" of C, as Redis 7.0 writes scores.
func cFormat(value float64) string {
	switch {
	case math.IsNaN(value):
		return "nan"
	case math.IsInf(value, 1):
		return "inf"
	case math.IsInf(value, -1):
		return "-inf"
	}
	return fmt.Sprintf("%.17g", value)
}

func (m *machine) toLua(reply Reply) lua.LValue {
	switch reply.Kind {
	case Int:
		return lua.LNumber(reply.Int)
	case Bulk:
		return lua.LString(reply.Text)
	case Status:
		table := m.lua.NewTable()
		table.RawSetString("ok", lua.LString(reply.Text))
		return table
	case Array:
		table := m.lua.CreateTable(len(reply.Array), 0)
		for i, x := range reply.Array {
			table.RawSetInt(i+1, m.toLua(x))
		}
		return table
	default:
		return lua.LFalse
	}
}

// oneLine makes a text of several lines one line, as errors and statuses are.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

func fromLua(lValue lua.LValue) Reply {
	switch v := lValue.(type) {
	case lua.LBool:
		if v {
			return intReply(1)
		}
		return nilReply
	case lua.LNumber:
		return intReply(truncate(float64(v)))
	case lua.LString:
		return bulk(string(v))
	case *lua.LTable:
		if text, ok := v.RawGetString("err").(lua.LString); ok {
			return fault(oneLine.Replace(string(text)))
		}
		if text, ok := v.RawGetString("ok").(lua.LString); ok {
			return status(oneLine.Replace(string(text)))
		}
		out := Reply{Kind: Array, Array: make([]Reply, 0, v.Len())}
		for i := 1; ; i++ {
			x := v.RawGetInt(i)
			if x == lua.LNil {
				return out
			}
			out.Array = append(out.Array, fromLua(x))
		}
	default:
		return nilReply
	}
}

// truncate is C's conversion of a double to a long long where it is defined.
func truncate(value float64) int64 {
	switch {
	case value >= math.MaxInt64 || value < math.MinInt64 || math.IsNaN(value):
		return math.MinInt64
	default:
		return int64(value)
	}
}
