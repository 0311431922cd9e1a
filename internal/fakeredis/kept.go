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
	scripts := &Scripts{mini: m, compiled: map[string]*lua.FunctionProto{}}
	scripts.machine = newMachine(scripts.carry, func(string) {})
	scripts.writer, scripts.reader = bufio.NewWriter(&scripts.out), bufio.NewReader(&scripts.out)
	m.Server().SetPreHook(func(peer *server.Peer, cmd string, _ ...string) bool {
		if cmd == "PING" {
			scripts.nested = reflect.ValueOf(peer.Ctx).Elem()
		}
		return false
	})
	m.Server().Dispatch(server.NewPeer(bufio.NewWriter(io.Discard)), []string{"EVAL", "redis.call('PING')", "0"})
	m.Server().SetPreHook(nil)
	return scripts
}

// Close releases the Lua state.
func (s *Scripts) Close() { s.machine.lua.Close() }

// Take is to be called before each command, and reports whether it has answered it.
func (s *Scripts) Take(peer *server.Peer, cmd string, args ...string) bool {
	switch cmd {
	case "EVAL", "EVALSHA":
		return len(args) > 1 && simple(peer) && s.run(peer, cmd, args)
	case "SCRIPT":
		s.note(args, simple(peer))
	}
	return false
}

// simple reports whether a connection is neither in a transaction, nor on another
// database, nor subscribed, nor a script's own.
func simple(peer *server.Peer) bool {
	return peer.Ctx == nil || !slices.ContainsFunc([]string{"transaction", "selectedDB", "subscriber", "nested"},
		func(field string) bool {
			return !reflect.ValueOf(peer.Ctx).Elem().FieldByName(field).IsZero()
		})
}

func (s *Scripts) run(peer *server.Peer, cmd string, args []string) bool {
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
	write(peer, s.machine.run(s.machine.function(script), keys, argv))
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
	value, err := server.ParseReply(s.reader)
	switch {
	case err == nil:
		return parsed(value)
	case strings.HasPrefix(err.Error(), "ERR unknown command"):
		return unknownToScript
	case strings.HasPrefix(err.Error(), "This Redis command is not allowed"):
		return forbiddenToScript
	default:
		return fault(err.Error())
	}
}

// parsed is a reply that miniredis has read.
func parsed(value any) Reply {
	switch v := value.(type) {
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
func write(peer *server.Peer, reply Reply) {
	null := nullRESP2
	if peer.Resp3 {
		null = "_\r\n"
	}
	peer.Block(func(writer *server.Writer) { writer.WriteRaw(string(reply.appendTo(nil, null))) })
}
