package fakeredis

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

const noScript = "NOSCRIPT No matching script. Please use EVAL."

// SHA1 is the name that EVALSHA knows a script by.
func SHA1(source string) string {
	sum := sha1.Sum([]byte(source))
	return hex.EncodeToString(sum[:])
}

// script is one that was loaded.
type script struct {
	machine *lua.LFunction
	sha     string

	kept     bool   // loaded at the start of each run
	loadedIn uint64 // the last run in which it was loaded
}

// loaded reports whether the server knows the script now.
func (t *Table) loaded(s *script) bool {
	return s != nil && (s.loadedIn == t.runs || s.kept && t.flushed != t.runs)
}

// Keep implements [Redis].
func (t *Table) Keep() {
	for _, script := range t.scripts {
		script.kept = t.loaded(script)
	}
	t.kept = true
	t.fresh = t.fresh[:0]
}

// Fresh implements [Redis].
func (t *Table) Fresh(buf []string) []string { return appendSorted(buf, t.fresh) }

func appendSorted(buf, list []string) []string {
	n := len(buf)
	buf = append(buf, list...)
	slices.Sort(buf[n:])
	return buf
}

// unload begins a run with the scripts that are kept.
func (t *Table) unload() {
	if t.kept {
		t.runs++
		t.fresh = t.fresh[:0]
	}
}

// flush unloads all scripts for the rest of the run.
func (t *Table) flush() {
	if t.trace != nil {
		t.trace.Loaded = true
	}
	for _, script := range t.scripts {
		script.loadedIn = 0
	}
	t.flushed = t.runs
	if t.kept {
		t.fresh = append(t.fresh[:0], flushed)
	}
}

// flushed stands among the fresh scripts for the kept ones that are gone.
const flushed = "flushed"

// load compiles a script once.
func (t *Table) load(source string) (*script, error) {
	s := t.sources[source]
	if s == nil {
		proto, err := compile(source)
		if err != nil {
			return nil, err
		}
		if t.machine == nil {
			t.machine = newMachine(t.fromScript, func(library string) { t.lacks(libraryPrefix + t.machine.missing(library)) })
		}
		s = &script{machine: t.machine.function(proto), sha: SHA1(source)}
		t.sources[source], t.scripts[s.sha] = s, s
	}
	if !t.loaded(s) {
		t.enter(s)
	}
	return s, nil
}

// compile compiles a script for a [machine].
func compile(source string) (*lua.FunctionProto, error) {
	chunk, err := parse.Parse(strings.NewReader(source), "@user_script")
	if err != nil {
		return nil, err
	}
	assignByParts(reflect.ValueOf(chunk))
	proto, err := lua.Compile(hoist(chunk), "@user_script")
	if err != nil {
		return nil, err
	}
	// Lua 5.0's table of arguments, which would be built for every call.
	proto.FunctionPrototypes[0].IsVarArg &^= lua.VarArgNeedsArg
	return proto, nil
}

// enter marks a script as loaded.
func (t *Table) enter(s *script) {
	if t.trace != nil {
		t.trace.Loaded = true
	}
	s.loadedIn = t.runs
	if t.kept {
		t.fresh = append(t.fresh, s.sha)
	}
}

func compileError(err error) Reply {
	text := strings.Join(strings.Fields(err.Error()), " ")
	return fault("ERR Error compiling script (new function): " + text)
}

func scriptCommand(table *Table, args []string) Reply {
	switch strings.ToLower(args[1]) {
	case "load":
		if len(args) != 3 {
			return wrongArity("script|load")
		}
		script, err := table.load(args[2])
		if err != nil {
			return compileError(err)
		}
		return bulk(script.sha)
	case "exists":
		if len(args) < 3 {
			return wrongArity("script|exists")
		}
		out := make([]Reply, len(args)-2)
		for i, sha := range args[2:] {
			out[i] = boolReply(table.loaded(table.scripts[strings.ToLower(sha)]))
		}
		return Reply{Kind: Array, Array: out}
	case "flush":
		table.flush()
		return okReply
	}
	return fault(fmt.Sprintf("ERR unknown subcommand '%s'. Try SCRIPT HELP.", args[1]))
}

func eval(table *Table, args []string) Reply {
	keys, argv, bad := scriptArgs(args[2:])
	if bad != nil {
		return *bad
	}
	script, err := table.load(args[1])
	if err != nil {
		return compileError(err)
	}
	return table.machine.run(script.machine, keys, argv)
}

func evalSHA(table *Table, args []string) Reply {
	keys, argv, bad := scriptArgs(args[2:])
	if bad != nil {
		return *bad
	}
	script := table.scripts[args[1]]
	if script == nil {
		script = table.scripts[strings.ToLower(args[1])]
	}
	if !table.loaded(script) {
		return fault(noScript)
	}
	return table.machine.run(script.machine, keys, argv)
}

// scriptArgs takes apart what stands behind a script.
func scriptArgs(args []string) (keys, argv []string, bad *Reply) {
	n, ok := parseInt(args[0])
	switch {
	case !ok:
		return nil, nil, &notInteger
	case n > int64(len(args)-1):
		reply := fault("ERR Number of keys can't be greater than number of args")
		return nil, nil, &reply
	case n < 0:
		reply := fault("ERR Number of keys can't be negative")
		return nil, nil, &reply
	}
	return args[1 : 1+n], args[1+n:], nil
}
