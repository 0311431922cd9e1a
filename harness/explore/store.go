package explore

import (
	"slices"
	"strconv"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/sched"
)

// store is the Redis of an exploration, looked at from outside of all actors.
type store interface {
	client() redis.UniversalClient
	// prefix begins every key of the strategy's.
	prefix() string
	// reset empties the store for a fresh run of s.
	reset(s *sched.Scheduler) error
	// keys lists what is stored, by name without the prefix.
	keys(now time.Time) ([]storedKey, error)
	evict(key string) error
	close() error
}

// storedKey is one key.
type storedKey struct {
	name string
	// left is the time to live; 0 is none.
	left time.Duration
	// content tells values apart, in an order of its own for values without one.
	content []string
	// numeric marks content that may be a count.
	numeric bool
}

// negative reports whether a count in the key is below zero.
func (k storedKey) negative() bool {
	return k.numeric && slices.ContainsFunc(k.content, func(s string) bool {
		n, err := strconv.ParseInt(s, 10, 64)
		return err == nil && n < 0
	})
}

// embedded is the store that searches run on.
type embedded struct {
	redis *sched.Embedded
	rdb   *redis.Client
	start time.Time
}

func newEmbedded(start time.Time) (*embedded, error) {
	e, err := sched.NewEmbedded()
	if err != nil {
		return nil, err
	}
	return &embedded{redis: e, rdb: e.Client(), start: start}, nil
}

func (e *embedded) client() redis.UniversalClient { return e.rdb }

func (e *embedded) prefix() string { return "" }

func (e *embedded) reset(s *sched.Scheduler) error {
	e.redis.Reset(s, e.start, 0)
	return nil
}

func (e *embedded) evict(key string) error {
	e.redis.Mini().Del(key)
	return nil
}

func (e *embedded) close() error {
	err := e.rdb.Close()
	e.redis.Close()
	return err
}

func (e *embedded) keys(time.Time) ([]storedKey, error) {
	m := e.redis.Mini()
	names := m.Keys()
	out := make([]storedKey, len(names))
	for i, name := range names {
		k := storedKey{name: name, left: m.TTL(name)}
		var err error
		k.content, k.numeric, err = contentOf(m, name)
		if err != nil {
			return nil, err
		}
		out[i] = k
	}
	return out, nil
}

func contentOf(m *miniredis.Miniredis, name string) (content []string, numeric bool, err error) {
	switch m.Type(name) {
	case "string":
		v, err := m.Get(name)
		return []string{v}, true, err
	case "hash":
		fields, err := m.HKeys(name)
		for _, f := range fields {
			content = append(content, f, m.HGet(name, f))
		}
		return content, true, err
	case "set":
		content, err = m.Members(name)
		return content, false, err
	case "list":
		content, err = m.List(name)
		return content, false, err
	case "zset":
		scores, err := m.SortedSet(name)
		for member, score := range scores {
			content = append(content, member+" "+strconv.FormatFloat(score, 'g', -1, 64))
		}
		slices.Sort(content)
		return content, false, err
	default: // what has no accessor of its own is at least told apart
		return []string{m.Dump()}, false, nil
	}
}
