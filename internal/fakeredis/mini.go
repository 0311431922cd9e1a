package fakeredis

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/fakeredis/resp"
)

// Mini is miniredis on virtual time, answered on the caller's own stack. It has
// more commands than a [Table] and is many times as slow, since it builds a Lua
// state for every script and visits all keys that can expire whenever time moves.
type Mini struct {
	mini    *miniredis.Miniredis
	server  *server.Server
	loaded  map[string]string // script sources to their digests
	kept    map[string]string // those that every run begins with; nil before Keep
	fresh   []string
	now     time.Time
	resets  int
	unknown string
}

var _ Redis = (*Mini)(nil)

// NewMini makes an empty one whose clock stands at 1970. It must be closed.
func NewMini() (*Mini, error) {
	mini := &Mini{mini: miniredis.NewMiniRedis(), loaded: map[string]string{}}
	// miniredis registers its commands at the first connection.
	conn, err := mini.mini.Dial()
	if err != nil {
		return nil, fmt.Errorf("start miniredis: %w", err)
	}
	mini.server = mini.mini.Server()
	mini.Reset(0)
	return mini, conn.Close()
}

// SetNow implements [Redis].
func (m *Mini) SetNow(unixNano int64) {
	now := time.Unix(0, unixNano).UTC()
	if duration := now.Sub(m.now); duration > 0 {
		// miniredis keeps the time that it reports apart from the time its keys have
		// left.
		m.now = now
		m.mini.SetTime(now)
		m.mini.FastForward(duration)
	}
}

// Reset implements [Redis].
func (m *Mini) Reset(unixNano int64) {
	m.resets++
	if len(m.fresh) > 0 {
		m.reload()
	}
	m.mini.FlushAll()
	m.now = time.Unix(0, unixNano).UTC()
	m.mini.SetTime(m.now)
}

// ExpireDue implements [Redis]; SetNow has removed them.
func (m *Mini) ExpireDue() {}

// Remove implements [Redis].
func (m *Mini) Remove(name string) { m.mini.Del(name) }

// Len implements [Redis].
func (m *Mini) Len() int { return len(m.mini.Keys()) }

// WithoutTTL implements [Redis].
func (m *Mini) WithoutTTL() (n int64) {
	for _, k := range m.mini.Keys() {
		if m.mini.TTL(k) == 0 {
			n++
		}
	}
	return n
}

// Unknown implements [Redis].
func (m *Mini) Unknown() string { return m.unknown }

// Close implements [Redis].
func (m *Mini) Close() { m.mini.CtxCancel() }

// Process implements [Redis]; miniredis only speaks the protocol.
func (m *Mini) Process(redis.Cmder) (error, bool) { return nil, false }

// Shadow implements [Redis]; miniredis shadows no server.
func (m *Mini) Shadow(redis.Cmder) {}

// Keys implements [Redis].
func (m *Mini) Keys(buf []Key) []Key {
	for _, name := range m.mini.Keys() {
		k := Key{Name: name, Left: m.mini.TTL(name)}
		k.Content, k.Members, k.Set = m.content(name)
		buf = append(buf, k)
	}
	return buf
}

// content reads a key, with how many members it has. Errors cannot happen: the key is there and of its type.
func (m *Mini) content(name string) (content []string, members int, set bool) {
	switch m.mini.Type(name) {
	case "string":
		text, _ := m.mini.Get(name)
		return []string{text}, 0, false
	case "hash":
		fields, _ := m.mini.HKeys(name)
		for _, text := range fields {
			content = append(content, text, m.mini.HGet(name, text))
		}
		return content, len(content) / 2, false
	case "set":
		content, _ = m.mini.Members(name)
		return content, len(content), true
	case "list":
		content, _ = m.mini.List(name)
		return content, len(content), true
	case "zset":
		scores, _ := m.mini.SortedSet(name)
		for member, score := range scores {
			content = append(content, member+" "+strconv.FormatFloat(score, 'g', -1, 64))
		}
		slices.Sort(content)
		return content, len(content), true
	default: // a type without an accessor is at least told apart
		return []string{m.mini.Dump()}, 0, true
	}
}

// dial implements [Redis].
func (m *Mini) dial() net.Conn {
	out := new(bytes.Buffer)
	writer := bufio.NewWriterSize(out, 512)
	peer := server.NewPeer(writer)
	resets := 0 // the run that the connection has been used in
	return resp.NewConn(out, func(args []string) {
		before := out.Len()
		if resets != m.resets { // what the connection watched belongs to an earlier run
			resets = m.resets
			m.server.Dispatch(peer, []string{"discard"})
			m.server.Dispatch(peer, []string{"unwatch"})
			peer.Flush()
			out.Truncate(before)
		}
		m.dispatch(peer, args)
		peer.Flush()
		if m.unknown == "" && bytes.HasPrefix(out.Bytes()[before:], []byte("-ERR unknown command")) &&
			!strings.EqualFold(args[0], "hello") {
			m.unknown = strings.ToLower(args[0])
		}
	})
}

// reload leaves miniredis with the scripts that are kept.
func (m *Mini) reload() {
	m.fresh = m.fresh[:0]
	m.loaded = maps.Clone(m.kept)
	m.script("flush")
	for source := range m.kept {
		m.script("load", source)
	}
}

// script runs SCRIPT, which no client has sent.
func (m *Mini) script(args ...string) (reply string) {
	var out bytes.Buffer
	peer := server.NewPeer(bufio.NewWriter(&out))
	m.server.Dispatch(peer, append([]string{"script"}, args...))
	peer.Flush()
	return out.String()
}

// Keep implements [Redis].
func (m *Mini) Keep() {
	m.kept = maps.Clone(m.loaded)
	m.fresh = m.fresh[:0]
}

// Fresh implements [Redis].
func (m *Mini) Fresh(buf []string) []string { return appendSorted(buf, m.fresh) }

// enter notes a script that miniredis has now.
func (m *Mini) enter(source, sha string) {
	m.loaded[source] = sha
	if m.kept != nil {
		m.fresh = append(m.fresh, sha)
	}
}

// blocks reports whether a command may wait for another one, or has its connection wait.
func blocks(args []string) bool {
	switch name := strings.ToLower(args[0]); name {
	case "blpop", "brpop", "brpoplpush", "blmove", "blmpop", "bzpopmin", "bzpopmax", "bzmpop",
		"subscribe", "psubscribe", "ssubscribe", "monitor":
		return true
	default:
		return strings.HasPrefix(name, "xread") && slices.ContainsFunc(args, func(text string) bool {
			return strings.EqualFold(text, "block")
		})
	}
}

// dispatch runs one command. Loading a script again is answered here, because
// miniredis compiles it each time and every run of a strategy begins with it.
func (m *Mini) dispatch(peer *server.Peer, args []string) {
	if blocks(args) { // it would wait by the wall clock
		m.unknown = strings.ToLower(args[0]) + ", which waits"
		peer.WriteError("ERR unknown command '" + args[0] + "'")
		return
	}
	source := ""
	switch {
	case len(args) > 1 && strings.EqualFold(args[0], "eval"):
		source = args[1]
	case len(args) == 3 && strings.EqualFold(args[0], "script") && strings.EqualFold(args[1], "load"):
		source = args[2]
		if sha, ok := m.loaded[source]; ok {
			peer.WriteBulk(sha)
			return
		}
	}
	m.server.Dispatch(peer, args)
	switch _, old := m.loaded[source]; {
	case source != "" && !old:
		if sha := SHA1(source); m.script("exists", sha) == "*1\r\n:1\r\n" { // it compiles
			m.enter(source, sha)
		}
	case len(args) > 1 && strings.EqualFold(args[0], "script") && strings.EqualFold(args[1], "flush"):
		clear(m.loaded)
		if m.kept != nil {
			m.fresh = append(m.fresh[:0], flushed)
		}
	}
}
