package fakeredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Redis is a Redis in this process whose time is set by the caller: a [Table], or
// a [Mini] if a strategy sends commands that the table lacks. It is used from
// one goroutine at a time.
type Redis interface {
	// SetNow sets the clock, in nanoseconds since 1970, and removes what has expired
	// by then. An earlier moment changes nothing.
	SetNow(unixNano int64)
	// Reset empties the store and sets its clock, backwards too. Scripts stay loaded, or
	// once Keep was called, those that were loaded then.
	Reset(unixNano int64)
	// Keep has every Reset from now on leave exactly those scripts loaded that are loaded
	// now.
	Keep()
	// Fresh appends the digests of the scripts that were loaded since Keep and the last
	// Reset, sorted. Before Keep there are none.
	Fresh(buf []string) []string
	// ExpireDue removes the keys whose deadline is now, which a server keeps to the
	// end of that millisecond.
	ExpireDue()
	// Process answers a command of a go-redis client without encoding it, and
	// reports whether it could. The error is the command's own.
	Process(cmd redis.Cmder) (err error, ok bool)
	// Shadow carries out a command that a real server answers, so that the deadlines
	// of keys are known here.
	Shadow(cmd redis.Cmder)
	// Keys appends all keys to buf, by name. What buf holds beyond its length is used
	// again.
	Keys(buf []Key) []Key
	// Remove drops a key.
	Remove(name string)
	// Len is the number of keys.
	Len() int
	// WithoutTTL counts the keys that never expire.
	WithoutTTL() int64
	// Unknown is the first command that the store does not have, in lower case, or "".
	Unknown() string
	// Close releases the store. Unknown still answers.
	Close()

	dial() net.Conn
}

// Lingering is what is left of a key in the millisecond of its deadline, in which a server still has it.
const Lingering = time.Nanosecond

// Key is one key as it is stored.
type Key struct {
	Name string
	// Left is the time to live, 0 for none, and [Lingering] in the millisecond of the deadline.
	Left time.Duration
	// Content is a string's value, a hash's fields each with its value after it,
	// a set's members, or a sorted set's members each with its score after it.
	// Fields and the members of sets are sorted, those of sorted sets in their order.
	Content []string
	// Members is how many members or fields a set, a sorted set, a list or a hash has.
	Members int
	// Set is true if the content holds names, of which no part is a count.
	Set bool
}

// Client returns a go-redis client of r without hooks. Its hooks may answer
// commands by [Redis.Process]; what they pass on is encoded and answered within
// the call.
func Client(r Redis) *redis.Client { return Watched(r, Pool, func(bool) error { return nil }) }

// Pool is large enough for any number of callers: one runs at a time, and only those within
// a WATCH keep a connection.
const Pool = 4096

// Watched is a Client with so many connections, which ask leave when they are opened and before
// they send something, and say whether it is the first that they send. An error is the answer:
// what is sent did not come by the hooks, perhaps. A pool may open connections on a goroutine of
// its own.
func Watched(r Redis, pool int, leave func(first bool) error) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:          "memory",
		Protocol:      2,
		PoolSize:      pool,
		MaxRetries:    -1,
		DialerRetries: 1,
		ReadTimeout:   -1,
		WriteTimeout:  -1,
		// Connections age by the wall clock, on which nothing may depend here.
		ConnMaxIdleTime: -1,
		ConnMaxLifetime: -1,
		DisableIdentity: true,
		// Without a type of endpoint the client looks its address up.
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled, EndpointType: maintnotifications.EndpointTypeNone,
		},
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			return &watched{Conn: r.dial(), leave: leave}, leave(false)
		},
	})
}

type watched struct {
	net.Conn
	leave func(first bool) error
	sent  bool
}

func (w *watched) Write(data []byte) (int, error) {
	first := !w.sent
	w.sent = true
	if err := w.leave(first); err != nil {
		return 0, err
	}
	return w.Conn.Write(data)
}

// ErrUnknown is the error of [WithFallback] if neither store has a command.
var ErrUnknown = errors.New("no Redis in this process has the command")

// WithFallback runs f with an open that makes tables, and if one of them lacks a
// command, runs f once more with an open that makes miniredis. What the first run
// returned is then dropped, so f may give up as soon as [Redis.Unknown] says that
// a command is missing. f must not close what open returns, and must not use it
// after it has returned.
func WithFallback[T any](f func(open func() (Redis, error)) (T, error)) (T, error) {
	var opened []Redis
	attempt := func(make func() (Redis, error)) (res T, unknown string, err error) {
		defer func() {
			for _, redis := range opened {
				redis.Close()
			}
			opened = opened[:0]
		}()
		res, err = f(func() (Redis, error) {
			redis, err := make()
			if err == nil {
				opened = append(opened, redis)
			}
			return redis, err
		})
		for _, redis := range opened {
			if unknown == "" {
				unknown = redis.Unknown()
			}
		}
		return res, unknown, err
	}
	res, unknown, err := attempt(func() (Redis, error) { return New(), nil })
	if unknown == "" {
		return res, err
	}
	nowhere := strings.HasPrefix(unknown, libraryPrefix) && unknown != libraryPrefix+onMini
	if !nowhere {
		res, unknown, err = attempt(func() (Redis, error) { return NewMini() })
	}
	if unknown != "" {
		err = errors.Join(err, fmt.Errorf("%w: %s", ErrUnknown, unknown))
	}
	return res, err
}

// Pipeline answers the commands of a plain pipeline, one after the other, and leaves to next
// those that r does not answer by itself, and transactions. It returns the first error.
func Pipeline(ctx context.Context, r Redis, cmds []redis.Cmder, next redis.ProcessPipelineHook) (first error) {
	if len(cmds) == 0 || cmds[0].Name() == "multi" {
		return next(ctx, cmds)
	}
	for i, cmd := range cmds {
		err, ok := r.Process(cmd)
		if !ok {
			err = next(ctx, cmds[i:i+1:i+1])
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// Lacking is an error once redis has met a command that it does not have.
func Lacking(redis Redis) error {
	if name := redis.Unknown(); name != "" {
		return fmt.Errorf("the strategy sends a command that the store does not have: %s", name)
	}
	return nil
}
