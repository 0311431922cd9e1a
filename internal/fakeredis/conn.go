package fakeredis

import (
	"bytes"
	"net"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/fakeredis/resp"
)

// session is what belongs to a connection and not to the keys.
type session struct {
	table  *Table
	queued [][]string // between MULTI and EXEC
	multi  bool
	dirty  bool // a queued command was refused
	// watched keys make EXEC fail once one of them has changed.
	watched []string
	changed bool
}

// dial opens a connection that has no other end.
func (t *Table) dial() net.Conn {
	s := &session{table: t}
	out := new(bytes.Buffer)
	var buf []byte
	return resp.NewConn(out, func(args []string) {
		buf = s.answer(args).appendTo(buf[:0], nullRESP2)
		out.Write(buf)
	})
}

// answer carries out one command.
func (s *session) answer(args []string) Reply {
	switch strings.ToLower(args[0]) {
	case "multi":
		if s.multi {
			return fault("ERR MULTI calls can not be nested")
		}
		s.multi = true
		return okReply
	case "exec":
		return s.exec()
	case "discard":
		if !s.multi {
			return fault("ERR DISCARD without MULTI")
		}
		s.end()
		return okReply
	case "watch":
		if s.table.Watch {
			return s.watch(args)
		}
	case "unwatch":
		if s.table.Watch && !s.multi {
			s.unwatch()
			return okReply
		}
	case "hello": // as a server from before RESP3, which clients fall back from
		return fault("ERR unknown command 'HELLO'")
	case "client", "select", "auth":
		return okReply
	}
	if !s.multi {
		return s.table.Do(args)
	}
	if k := table[strings.ToLower(args[0])]; k == nil || len(args) != k.arity && (k.arity > 0 || len(args) < -k.arity) {
		s.dirty = true
		return s.table.Do(args) // which says what is wrong with it
	}
	s.queued = append(s.queued, args)
	return status("QUEUED")
}

func (s *session) exec() Reply {
	if !s.multi {
		return fault("ERR EXEC without MULTI")
	}
	queued := s.queued
	dirty := s.dirty
	changed := s.changed
	s.end()
	if dirty {
		return fault("EXECABORT Transaction discarded because of previous errors.")
	}
	if changed {
		return nilReply
	}
	out := Reply{Kind: Array, Array: make([]Reply, len(queued))}
	for i, args := range queued {
		out.Array[i] = s.table.Do(args)
	}
	return out
}

// watch has the next EXEC fail if one of the keys changes before it.
func (s *session) watch(args []string) Reply {
	switch {
	case len(args) < 2:
		s.dirty = s.multi
		return wrongArity("watch")
	case s.multi:
		return fault("ERR WATCH inside MULTI is not allowed")
	}
	for _, key := range args[1:] {
		if slices.Contains(s.watched, key) {
			continue
		}
		if s.table.watchers == nil {
			s.table.watchers = map[string][]*session{}
		}
		s.table.watchers[key] = append(s.table.watchers[key], s)
		s.watched = append(s.watched, key)
	}
	return okReply
}

func (s *session) unwatch() {
	for _, key := range s.watched {
		left := slices.DeleteFunc(s.table.watchers[key], func(x *session) bool { return x == s })
		s.table.watchers[key] = left
		if len(left) == 0 {
			delete(s.table.watchers, key)
		}
	}
	s.watched = nil
	s.changed = false
}

// end ends a transaction.
func (s *session) end() {
	s.multi = false
	s.dirty = false
	s.queued = nil
	s.unwatch()
}

// touch tells those that watch a key that it has changed.
func (t *Table) touch(key string) {
	for _, session := range t.watchers[key] {
		session.changed = true
	}
}

// changes reports whether a command has changed its key without calling touch.
func changes(c *command, reply Reply) bool {
	return !c.has(noted|touches) && reply.Kind != Err && (reply.Kind != Int || reply.Int != 0 || !c.has(ifAny))
}
