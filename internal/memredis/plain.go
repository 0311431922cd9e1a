package memredis

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// plain is a script that needs no Lua machine: locals, arithmetic, comparisons,
// conditions, lists and redis.call, which is what scripts of limiters are made
// of. It is compiled into closures, several times faster than the machine.
// Whatever it does not know leaves the whole script to the machine; both are held
// against each other, and against Redis.
type plain struct {
	body  []statement
	slots int // most locals at a time
}

// luaKind is the type of a value.
type luaKind uint8

const (
	luaNil luaKind = iota
	luaFalse
	luaTrue
	luaNumber
	luaString
	luaDigits // a string that is a whole number in decimal, which a double holds exactly
	luaStatus // a table with the field ok
	luaList
)

// luaValue is a value of a plain script.
type luaValue struct {
	kind   luaKind
	number float64
	text   string
	list   []luaValue
}

func (v *luaValue) truth() bool { return v.kind > luaFalse }

// spelled is the value with its digits as a text: scripts turn most of them into numbers
// again, for which they need not be written.
func (v luaValue) spelled() luaValue {
	if v.kind == luaDigits {
		return luaValue{kind: luaString, text: decimal(int64(v.number))}
	}
	return v
}

// digitsValue is a string of a whole number.
func digitsValue(n int64) luaValue {
	if n > maxExact || n < -maxExact {
		return luaValue{kind: luaString, text: decimal(n)}
	}
	return luaValue{kind: luaDigits, number: float64(n)}
}

// maxExact is up to which size a double holds all whole numbers.
const maxExact = 1 << 53

func truthValue(b bool) luaValue {
	if b {
		return luaValue{kind: luaTrue}
	}
	return luaValue{kind: luaFalse}
}

// frame is a plain script under way.
type frame struct {
	t          *Table
	keys, argv []string
	slots      []luaValue
	args       []string   // of the calls under way, one after the other
	lists      []luaValue // elements of the lists that the script has made
	result     luaValue
}

// Statements report whether the script has returned.
type (
	statement  func(f *frame) bool
	expression func(f *frame) luaValue
)

// scriptFault is thrown where a script fails.
type scriptFault struct{ reply Reply }

func throw(text string) { panic(scriptFault{fault(text)}) }

// runPlain runs a script.
func (t *Table) runPlain(p *plain, keys, argv []string) Reply {
	if bad, failed := t.carryThrough(p, keys, argv); failed {
		return bad
	}
	return t.frame.result.reply()
}

// carryThrough runs a script, whose result is then in the frame, or returns its error.
// What it changed before an error stays, as in Redis.
func (t *Table) carryThrough(p *plain, keys, argv []string) (bad Reply, failed bool) {
	f := &t.frame
	f.t = t
	f.keys = keys
	f.argv = argv
	f.args = f.args[:0]
	f.lists = f.lists[:0]
	f.result = luaValue{}
	for len(f.slots) < p.slots {
		f.slots = append(f.slots, luaValue{})
	}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case scriptFault:
			bad, failed = e.reply, true
		default:
			panic(e)
		}
	}()
	runBlock(f, p.body)
	return bad, false
}

// list makes a list of n elements, which is valid until the next script.
func (f *frame) list(n int) []luaValue {
	begin := len(f.lists)
	if begin+n > cap(f.lists) { // lists that were made before keep what they have
		f.lists, begin = make([]luaValue, 0, 2*(begin+n)), 0
	}
	f.lists = f.lists[:begin+n]
	return f.lists[begin : begin+n : begin+n]
}

func runBlock(f *frame, body []statement) bool {
	for _, s := range body {
		if s(f) {
			return true
		}
	}
	return false
}

// reply is what the client gets.
func (v *luaValue) reply() Reply {
	switch v.kind {
	case luaTrue:
		return intReply(1)
	case luaNumber:
		return intReply(truncate(v.number))
	case luaString, luaDigits:
		return bulk(v.spelled().text)
	case luaStatus:
		return status(v.text)
	case luaList:
		out := Reply{Kind: Array, Array: make([]Reply, 0, len(v.list))}
		for i := range v.list {
			if v.list[i].kind == luaNil {
				break // where a list ends for Redis
			}
			out.Array = append(out.Array, v.list[i].reply())
		}
		return out
	default:
		return nilReply
	}
}

// any is the reply as the client's generic command has it; nil for none. As in reply, a
// list ends at its first nil.
func (v *luaValue) any() any {
	switch v.kind {
	case luaTrue:
		return int64(1)
	case luaNumber:
		return truncate(v.number)
	case luaString, luaStatus, luaDigits:
		return v.spelled().text
	case luaList:
		n := 0
		for n < len(v.list) && v.list[n].kind != luaNil {
			n++
		}
		out := make([]any, n)
		for i := range out {
			out[i] = v.list[i].any()
		}
		return out
	default:
		return nil
	}
}

// plainValue is what a script gets from a command.
func plainValue(r Reply) luaValue {
	switch r.Kind {
	case Int:
		return luaValue{kind: luaNumber, number: float64(r.Int)}
	case Bulk:
		return luaValue{kind: luaString, text: r.Text}
	case Status:
		return luaValue{kind: luaStatus, text: r.Text}
	case Array:
		list := make([]luaValue, len(r.Array))
		for i, x := range r.Array {
			list[i] = plainValue(x)
		}
		return luaValue{kind: luaList, list: list}
	default:
		return luaValue{kind: luaFalse}
	}
}

// arithmetic is the value as an operand.
func (v *luaValue) arithmetic() float64 {
	switch v.kind {
	case luaNumber, luaDigits:
		return v.number
	case luaString:
		if n, ok := parseLua(v.text); ok {
			return n
		}
	}
	throw("ERR user_script: attempt to perform arithmetic on something that is not a number")
	return 0
}

// call carries a command out; its arguments are on the frame's stack from base.
func (f *frame) call(c *command, base int) luaValue {
	args := f.args[base:]
	if f.t.elsewhere != nil {
		r := f.t.elsewhere(args)
		f.args = f.args[:base]
		if r.Kind == Err {
			panic(scriptFault{r})
		}
		return plainValue(r)
	}
	if c == nil {
		c = lookup(args[0])
	}
	switch {
	case c == nil:
		f.t.Do(args) // which notes that there is no such command
		panic(scriptFault{unknownToScript})
	case c.script:
		panic(scriptFault{forbiddenToScript})
	}
	if c.plain != nil && len(args) == c.arity {
		if v, ok := c.plain(f, args); ok {
			f.args = f.args[:base]
			return v
		}
	}
	r := f.t.carryOut(c, args)
	f.args = f.args[:base]
	if r.Kind == Err {
		panic(scriptFault{r})
	}
	return plainValue(r)
}

// push adds an argument of a command.
func (f *frame) push(v luaValue) {
	switch v.kind {
	case luaString:
		f.args = append(f.args, v.text)
	case luaNumber:
		f.args = append(f.args, f.t.digits.luaNumber(v.number))
	case luaDigits:
		f.args = append(f.args, f.t.digits.integer(int64(v.number)))
	default:
		throw("ERR Lua redis lib command arguments must be strings or integers")
	}
}

// compareTexts is the order of two values that are not both numbers; operands that have
// none are an error.
func compareTexts(a, b luaValue) int {
	a, b = a.spelled(), b.spelled()
	if a.kind != luaString || b.kind != luaString {
		throw("ERR user_script: attempt to compare what has no order")
	}
	return strings.Compare(a.text, b.text)
}

// same is equality without conversion. Lists are never compared: the compiler sees to it.
func same(a, b luaValue) bool {
	a, b = a.spelled(), b.spelled()
	return a.kind == b.kind && a.number == b.number && a.text == b.text
}

// parseLua is tonumber of a string.
func parseLua(s string) (float64, bool) {
	if len(s) < 16 { // which a double holds exactly
		if n, ok := parseShort(s); ok {
			return float64(n), true
		}
	}
	n, ok := parseFloat(s).(lua.LNumber)
	return float64(n), ok
}

// compilePlain compiles a script, or returns nil if it is not a plain one.
func compilePlain(chunk []ast.Stmt) (p *plain) {
	c := &compiler{}
	defer func() {
		if e := recover(); e != nil {
			if _, ok := e.(notPlain); !ok {
				panic(e)
			}
			p = nil
		}
	}()
	body := c.block(chunk)
	return &plain{body, c.most}
}
