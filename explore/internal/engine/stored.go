package engine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/fakeredis"
	"github.com/quotabench/quotabench/results"
)

// Stored notes what a store holds after each step of a timeline: the keys of a Redis, or the rows of a database.
type Stored struct {
	// Look returns the keys that are stored now, or is nil if they cannot be seen.
	Look func() []fakeredis.Key
	// Readable takes from a text of the store what means nothing to people, such as a prefix; nil changes nothing.
	Readable func(string) string
	// Row reports whether what Look returns by a name is a row of a table, whose primary key it is; nil for none.
	Row func(name string) bool

	before map[string]storedKey
	named  map[string]bool
}

// storedKey is a key with the moment at which it expires: since the start of the run, 0 for never.
type storedKey struct {
	fakeredis.Key
	expires time.Duration
}

// begin forgets the run before.
func (s *Stored) begin() {
	s.before = nil
	s.named = nil
}

// open notes what is stored before the first step.
func (s *Stored) open() {
	if s.Look != nil && s.before == nil {
		s.before = s.now(0)
	}
}

// Commands notes commands of a go-redis client, whose keys have a prefix. See [Stored.Sends].
func (s *Stored) Commands(prefix string, commands ...redis.Cmder) {
	for _, cmd := range commands {
		if cmd == nil {
			continue
		}
		var args []string
		for _, arg := range cmd.Args() {
			args = append(args, strings.TrimPrefix(fmt.Sprint(arg), prefix))
		}
		s.Sends(args...)
	}
}

// Sends notes a command of the step that is being described: the keys that it may write are shown although it
// leaves them as they were.
func (s *Stored) Sends(args ...string) {
	for _, key := range writes(args) {
		if s.named == nil {
			s.named = map[string]bool{}
		}
		s.named[key] = true
	}
}

// reading are the commands that change no key.
var reading = func() map[string]bool {
	out := map[string]bool{}
	for name := range strings.FieldsSeq("get mget strlen exists type ttl pttl expiretime pexpiretime keys scan dbsize time " +
		"hget hmget hgetall hexists hlen hkeys hvals scard sismember smembers zcard zcount zscore zmscore zrank zrevrank " +
		"zrange zrangebyscore zrevrange zrevrangebyscore llen lrange lindex eval_ro evalsha_ro script ping wait") {
		out[name] = true
	}
	return out
}()

// writes are the keys that a command may change, of which that of an unknown command is the first.
func writes(args []string) []string {
	if len(args) < 2 || reading[strings.ToLower(args[0])] {
		return nil
	}
	switch strings.ToLower(args[0]) {
	case "eval", "evalsha":
		if len(args) < 3 {
			return nil
		}
		n, err := strconv.Atoi(args[2])
		if err != nil {
			return nil
		}
		return args[3:min(len(args), 3+max(0, n))]
	case "del", "unlink":
		return args[1:]
	}
	return args[1:2]
}

// after returns the keys that the step has changed and those that it may have, as they are at this moment since the
// start of the run.
func (s *Stored) after(at time.Duration) (out []results.StoredKey) {
	if s.Look == nil {
		return nil
	}
	now := s.now(at)
	touched := maps.Clone(s.named)
	if touched == nil {
		touched = map[string]bool{}
	}
	for name, key := range now {
		if !same(s.before, name, key) {
			touched[name] = true
		}
	}
	for name := range s.before {
		if _, still := now[name]; !still {
			touched[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(touched)) {
		key, there := now[name]
		_, was := s.before[name]
		shown := results.StoredKey{Key: s.readable(name), Row: s.Row != nil && s.Row(name), Gone: !there}
		if there {
			shown.TTL = key.Left
			shown.Members = key.Members
			shown.Unchanged = same(s.before, name, key)
			if key.Members == 0 && len(key.Content) == 1 {
				shown.Value = s.readable(key.Content[0])
			}
		} else {
			shown.Unchanged = !was
		}
		out = append(out, shown)
	}
	s.before = now
	s.named = nil
	return out
}

// now is what is stored at this moment, by name.
func (s *Stored) now(at time.Duration) map[string]storedKey {
	out := map[string]storedKey{}
	for _, key := range s.Look() {
		key.Content = slices.Clone(key.Content)
		expires := time.Duration(0)
		if key.Left != 0 {
			expires = at + key.Left
		}
		out[key.Name] = storedKey{key, expires}
	}
	return out
}

func same(before map[string]storedKey, name string, key storedKey) bool {
	old, was := before[name]
	return was && old.expires == key.expires && slices.Equal(old.Content, key.Content)
}

func (s *Stored) readable(text string) string {
	if s.Readable == nil {
		return text
	}
	return s.Readable(text)
}
