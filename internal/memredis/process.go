package memredis

import (
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Process implements [Redis]: only the types of command that strategies use all
// the time are known.
func (t *Table) Process(cmd redis.Cmder) (error, bool) {
	switch cmd.(type) {
	case *redis.IntCmd, *redis.StringCmd, *redis.BoolCmd, *redis.StatusCmd, *redis.Cmd:
	default:
		return nil, false
	}
	args := t.args[:0]
	for _, a := range cmd.Args() {
		text, ok := t.argument(a)
		if !ok {
			return nil, false
		}
		args = append(args, text)
	}
	t.args = args
	r := t.Do(args)
	switch c := cmd.(type) {
	case *redis.IntCmd:
		if r.Kind == Int {
			c.SetVal(r.Int)
			return nil, true
		}
		return settle(c, r)
	case *redis.StringCmd:
		if r.Kind == Bulk || r.Kind == Status {
			c.SetVal(r.Text)
			return nil, true
		}
		return settle(c, r)
	case *redis.BoolCmd:
		switch r.Kind {
		case Int:
			c.SetVal(r.Int == 1)
			return nil, true
		case Status:
			c.SetVal(r.Text == "OK")
			return nil, true
		case Nil: // SET NX answers nil where SETNX answers 0
			c.SetVal(false)
			return nil, true
		}
		return settle(c, r)
	case *redis.StatusCmd:
		if r.Kind == Status || r.Kind == Bulk {
			c.SetVal(r.Text)
			return nil, true
		}
		return settle(c, r)
	case *redis.Cmd:
		if r.Kind == Err || r.Kind == Nil {
			return settle(c, r)
		}
		c.SetVal(r.any())
		return nil, true
	}
	return settle(cmd, r)
}

// settle gives a command the error that its reply stands for.
func settle(c redis.Cmder, r Reply) (error, bool) {
	var err error
	switch r.Kind {
	case Err:
		err = serverError(r.Text)
	case Nil:
		err = redis.Nil
	default:
		err = fmt.Errorf("memredis: %s answered what it never does", c.Name())
	}
	c.SetErr(err)
	return err, true
}

// serverError is an error that the server answered, as [redis.Error] marks them.
type serverError string

func (e serverError) Error() string { return string(e) }

// RedisError implements [redis.Error].
func (serverError) RedisError() {}

// any is the reply as the client's generic command has it.
func (r Reply) any() any {
	switch r.Kind {
	case Int:
		return r.Int
	case Bulk, Status:
		return r.Text
	case Err:
		return serverError(r.Text)
	case Array:
		out := make([]any, len(r.Array))
		for i, x := range r.Array {
			out[i] = x.any()
		}
		return out
	default:
		return nil
	}
}

// argument is what the client's encoder makes of an argument; false leaves it to
// the encoder.
func (t *Table) argument(a any) (string, bool) {
	switch v := a.(type) {
	case string:
		return v, true
	case int64:
		return t.digits.integer(v), true
	case int:
		return t.digits.integer(int64(v)), true
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
	args := make([]string, 0, len(cmd.Args()))
	for _, a := range cmd.Args() {
		text, ok := t.argument(a)
		if !ok {
			return
		}
		args = append(args, text)
	}
	if len(args) > 0 {
		t.Do(args)
	}
}
