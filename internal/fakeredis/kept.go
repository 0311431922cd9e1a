package fakeredis

import (
	"bufio"
	"bytes"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	lua "github.com/yuin/gopher-lua"
)

// foreign are names by which a script asks for what the machine lacks, or gets around
// what keeps scripts apart.
var foreign = slices.Concat(libraries, removed, []string{
	"coroutine", "debug", "os", "package", "server", "load", "loadstring", "_G", "getfenv", "setfenv", "getmetatable",
	"setmetatable", "rawset", "setresp", "set_repl", "breakpoint", "acl_check_cmd",
})

// Scripts runs the scripts of a miniredis in one Lua state that is kept; miniredis
// makes one for each call and is ten times as slow as a server. Scripts that need more
// than that state has, transactions and connections to another database are left to
// miniredis.
type Scripts struct {
	mini   *miniredis.Miniredis
	nested reflect.Value // what miniredis knows of a connection whose commands come from a script

	mu       sync.Mutex
	compiled map[string]*lua.FunctionProto // by digest; all of them are loaded

	// The rest is used while the server is locked.
	machine *machine
	peer    *server.Peer // of the script that runs
	out     bytes.Buffer
	writer  *bufio.Writer
	reader  *bufio.Reader
}

// NewScripts prepares a server that has started, and has no hook yet.
func NewScripts(m *miniredis.Miniredis) *Scripts {
	s := &Scripts{mini: m, compiled: map[string]*lua.FunctionProto{}}
	s.machine = newMachine(s.carry, func(string) {})
	s.writer, s.reader = bufio.NewWriter(&s.out), bufio.NewReader(&s.out)
	m.Server().SetPreHook(func(p *server.Peer, cmd string, _ ...string) bool {
		if cmd == "PING" {
			s.nested = reflect.ValueOf(p.Ctx).Elem()
		}
		return false
	})
	m.Server().Dispatch(server.NewPeer(bufio.NewWriter(io.Discard)), []string{"EVAL", "redis.call('PING')", "0"})
	m.Server().SetPreHook(nil)
	return s
}

// Close releases the Lua state.
func (s *Scripts) Close() { s.machine.lua.Close() }

// Take is to be called before each command, and reports whether it has answered it.
func (s *Scripts) Take(p *server.Peer, cmd string, args []string) bool {
	switch cmd {
	case "EVAL", "EVALSHA":
		return len(args) > 1 && simple(p) && s.run(p, cmd, args)
	case "SCRIPT":
		s.note(args, simple(p))
	}
	return false
}

// simple reports whether a connection is neither in a transaction, nor on another
// database, nor subscribed, nor a script's own.
func simple(p *server.Peer) bool {
	return p.Ctx == nil || !slices.ContainsFunc([]string{"transaction", "selectedDB", "subscriber", "nested"}, func(field string) bool {
		return !reflect.ValueOf(p.Ctx).Elem().FieldByName(field).IsZero()
	})
}

func (s *Scripts) run(p *server.Peer, cmd string, args []string) bool {
	keys, argv, bad := scriptArgs(args[1:])
	if bad != nil {
		return false
	}
	sha := args[0]
	if cmd == "EVAL" {
		sha = SHA1(args[0])
	}
	script := s.find(sha)
	if script == nil && cmd == "EVAL" { // which loads it, too
		s.mini.Server().Dispatch(server.NewPeer(bufio.NewWriter(io.Discard)), []string{"SCRIPT", "LOAD", args[0]})
		script = s.find(sha)
	}
	if script == nil {
		return false
	}
	s.mini.Lock()
	defer s.mini.Unlock()
	known := reflect.New(s.nested.Type())
	known.Elem().Set(s.nested)
	s.peer = server.NewPeer(s.writer)
	s.peer.Ctx = known.Interface()
	write(p, s.machine.run(s.machine.lua.NewFunctionFromProto(script), keys, argv))
	return true
}

func (s *Scripts) find(sha string) *lua.FunctionProto {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compiled[sha]
}

// note keeps up with what miniredis is about to load.
func (s *Scripts) note(args []string, now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(args) > 0 && strings.EqualFold(args[0], "flush"):
		clear(s.compiled)
	case now && len(args) == 2 && strings.EqualFold(args[0], "load"):
		proto, err := compile(args[1])
		if err == nil && !slices.ContainsFunc(foreign, func(name string) bool { return names(proto, name) }) {
			s.compiled[SHA1(args[1])] = proto
		}
	}
}

// carry has miniredis carry out a command of the script that runs.
func (s *Scripts) carry(args []string) Reply {
	s.out.Reset()
	s.reader.Reset(&s.out)
	s.mini.Server().Dispatch(s.peer, slices.Clone(args)) // miniredis may keep them
	s.peer.Flush()
	v, err := server.ParseReply(s.reader)
	switch {
	case err == nil:
		return parsed(v)
	case strings.HasPrefix(err.Error(), "ERR unknown command"):
		return unknownToScript
	case strings.HasPrefix(err.Error(), "This Redis command is not allowed"):
		return forbiddenToScript
	default:
		return fault(err.Error())
	}
}

// parsed is a reply that miniredis has read.
func parsed(v any) Reply {
	switch v := v.(type) {
	case int:
		return intReply(int64(v))
	case string:
		return bulk(v)
	case server.Simple:
		return status(string(v))
	case []any:
		out := Reply{Kind: Array, Array: make([]Reply, len(v))}
		for i, x := range v {
			out.Array[i] = parsed(x)
		}
		return out
	default:
		return nilReply
	}
}

// write sends a reply in the protocol that the client has chosen.
func write(p *server.Peer, r Reply) {
	null := nullRESP2
	if p.Resp3 {
		null = "_\r\n"
	}
	p.Block(func(w *server.Writer) { w.WriteRaw(string(r.appendTo(nil, null))) })
}
