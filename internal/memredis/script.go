package memredis

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
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
	plain   *plain // nil where the script needs the machine
}

// load compiles a script once.
func (t *Table) load(source string) (*script, string, error) {
	sha := SHA1(source)
	if s := t.scripts[sha]; s != nil {
		return s, sha, nil
	}
	chunk, err := parse.Parse(strings.NewReader(source), "@user_script")
	if err != nil {
		return nil, sha, err
	}
	proto, err := lua.Compile(chunk, "@user_script")
	if err != nil {
		return nil, sha, err
	}
	// Lua 5.0's table of arguments, which would be built for every call.
	proto.IsVarArg &^= lua.VarArgNeedsArg
	s := &script{t.state().NewFunctionFromProto(proto), compilePlain(chunk)}
	t.scripts[sha] = s
	return s, sha, nil
}

func compileError(err error) Reply {
	text := strings.Join(strings.Fields(err.Error()), " ")
	return fault("ERR Error compiling script (new function): " + text)
}

func scriptCommand(t *Table, args []string) Reply {
	switch strings.ToLower(args[1]) {
	case "load":
		if len(args) != 3 {
			return wrongArity("script|load")
		}
		_, sha, err := t.load(args[2])
		if err != nil {
			return compileError(err)
		}
		return bulk(sha)
	case "exists":
		if len(args) < 3 {
			return wrongArity("script|exists")
		}
		out := make([]Reply, len(args)-2)
		for i, sha := range args[2:] {
			out[i] = boolReply(t.scripts[strings.ToLower(sha)] != nil)
		}
		return Reply{Kind: Array, Array: out}
	case "flush":
		clear(t.scripts)
		return okReply
	}
	return fault(fmt.Sprintf("ERR unknown subcommand '%s'. Try SCRIPT HELP.", args[1]))
}

func eval(t *Table, args []string) Reply {
	keys, argv, bad := scriptArgs(args)
	if bad != nil {
		return *bad
	}
	s, _, err := t.load(args[1])
	if err != nil {
		return compileError(err)
	}
	return t.run(s, keys, argv)
}

func evalSHA(t *Table, args []string) Reply {
	keys, argv, bad := scriptArgs(args)
	if bad != nil {
		return *bad
	}
	s := t.scripts[args[1]]
	if s == nil {
		if s = t.scripts[strings.ToLower(args[1])]; s == nil {
			return fault(noScript)
		}
	}
	return t.run(s, keys, argv)
}

func scriptArgs(args []string) (keys, argv []string, bad *Reply) {
	n, ok := parseInt(args[2])
	switch {
	case !ok:
		r := notInteger
		return nil, nil, &r
	case n > int64(len(args)-3):
		r := fault("ERR Number of keys can't be greater than number of args")
		return nil, nil, &r
	case n < 0:
		r := fault("ERR Number of keys can't be negative")
		return nil, nil, &r
	}
	return args[3 : 3+n], args[3+n:], nil
}

func (t *Table) run(s *script, keys, argv []string) Reply {
	if s.plain != nil {
		return t.runPlain(s.plain, keys, argv)
	}
	return t.runMachine(s.machine, keys, argv)
}
