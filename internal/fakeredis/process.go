package fakeredis

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Process implements [Redis]: only the types of command that strategies use all
// the time are known.
func (t *Table) Process(cmd redis.Cmder) (error, bool) {
	switch cmd.(type) {
	case *redis.IntCmd, *redis.StringCmd, *redis.BoolCmd, *redis.StatusCmd, *redis.StringSliceCmd, *redis.Cmd:
	default:
		return nil, false
	}
	args, ok := t.arguments(cmd)
	if !ok || t.Watch && (args[0] == "watch" || args[0] == "unwatch") { // which are about a connection
		return nil, false
	}
	if stringSliceCmd, ok := cmd.(*redis.StringSliceCmd); ok && len(args) == 2 && args[0] == "smembers" {
		if entry, ok := t.find(args[1], kindSet); ok && entry != nil { // without a reply for each of many
			stringSliceCmd.SetVal(slices.Clone(entry.members.keys))
			return nil, true
		}
	}
	reply := t.Do(args)
	if intCmd, ok := cmd.(*redis.IntCmd); ok && reply.Kind == Int {
		intCmd.SetVal(reply.Int)
		return nil, true
	}
	text, isText := reply.text()
	done := false
	switch c := cmd.(type) {
	case *redis.IntCmd:
		n, err := strconv.ParseInt(text, 10, 64)
		done = give(c, n, isText && err == nil)
	case *redis.StringCmd:
		done = give(c, text, isText)
	case *redis.BoolCmd: // SET NX answers nil, SETNX answers 0
		done = give(c, text == "1" || text == "OK" || text == "true", isText || reply.Kind == Nil)
	case *redis.StatusCmd:
		done = give(c, text, isText)
	case *redis.StringSliceCmd:
		texts, ok := reply.texts()
		done = give(c, texts, ok)
	case *redis.Cmd:
		done = give(c, reply.any(), reply.Kind != Err && reply.Kind != Nil)
	}
	if done {
		return nil, true
	}
	return settle(cmd, reply)
}

// give gives a command its value if it is one, and reports that.
func give[T any](c interface{ SetVal(T) }, value T, is bool) bool {
	if is {
		c.SetVal(value)
	}
	return is
}

// arguments are those of a command as texts, valid until the next command; false leaves
// them to the client's encoder.
func (t *Table) arguments(cmd redis.Cmder) ([]string, bool) {
	args := t.args[:0]
	for _, value := range cmd.Args() {
		text, ok := argument(value)
		if !ok {
			return nil, false
		}
		args = append(args, text)
	}
	t.args = args
	return args, true
}

// settle gives a command the error that its reply stands for.
func settle(cmd redis.Cmder, reply Reply) (error, bool) {
	var err error
	switch reply.Kind {
	case Err:
		err = ServerError(reply.Text)
	case Nil:
		err = redis.Nil
	default:
		err = fmt.Errorf("memredis: %s answered what it never does", cmd.Name())
	}
	cmd.SetErr(err)
	return err, true
}

// ServerError is an error that a server answered, as [redis.Error] marks them.
type ServerError string

func (e ServerError) Error() string { return string(e) }

// RedisError implements [redis.Error].
func (ServerError) RedisError() {}

// text is a single value as the client's reader has it; false for any other reply.
func (r Reply) text() (string, bool) {
	switch r.Kind {
	case Bulk, Status:
		return r.Text, true
	case Int:
		return strconv.FormatInt(r.Int, 10), true
	default:
		return "", false
	}
}

// texts are the elements of an array of single values, nil ones as empty; false for
// any other reply.
func (r Reply) texts() ([]string, bool) {
	if r.Kind != Array {
		return nil, false
	}
	out := make([]string, len(r.Array))
	for i, reply := range r.Array {
		text, ok := reply.text()
		if !ok && reply.Kind != Nil {
			return nil, false
		}
		out[i] = text
	}
	return out, true
}

// any is the reply as the client's generic command has it.
func (r Reply) any() any {
	switch r.Kind {
	case Int:
		return r.Int
	case Bulk, Status:
		return r.Text
	case Err:
		return ServerError(r.Text)
	case Array:
		out := make([]any, len(r.Array))
		for i, reply := range r.Array {
			out[i] = reply.any()
		}
		return out
	default:
		return nil
	}
}

// argument is what the client's encoder makes of an argument; false leaves it to
// the encoder.
func argument(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case int64:
		return strconv.FormatInt(v, 10), true
	case int:
		return strconv.Itoa(v), true
	case uint64:
		return strconv.FormatUint(v, 10), true
	case []byte:
		return string(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case bool:
		if v {
			return "1", true
		}
		return "0", true
	case time.Duration:
		return strconv.FormatInt(v.Nanoseconds(), 10), true
	default:
		return "", false
	}
}

// Shadow implements [Redis]. MULTI and EXEC around others mean nothing to it.
func (t *Table) Shadow(cmd redis.Cmder) {
	if name := cmd.Name(); name == "multi" || name == "exec" {
		return
	}
	if args, ok := t.arguments(cmd); ok && len(args) > 0 {
		t.Do(args)
	}
}
