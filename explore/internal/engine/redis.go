package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/fakeredis"
)

// ReplyText is a command's answer in a few words.
func ReplyText(cmd redis.Cmder, err error) string {
	if errors.Is(err, redis.Nil) {
		return "nil"
	}
	if err != nil {
		return "error: " + err.Error()
	}
	switch c := cmd.(type) {
	case *redis.IntCmd:
		return strconv.FormatInt(c.Val(), 10)
	case *redis.StringCmd:
		return c.Val()
	case *redis.StatusCmd:
		return c.Val()
	case *redis.BoolCmd:
		if c.Val() {
			return "1"
		}
		return "0"
	case *redis.StringSliceCmd:
		return "[" + strings.Join(c.Val(), " ") + "]"
	case *redis.Cmd:
		return fmt.Sprint(c.Val())
	default:
		// "args: value", of which the value is wanted; kinds of reply are many.
		text := c.String()
		if i := strings.LastIndex(text, ": "); i >= 0 {
			return text[i+2:]
		}
		return text
	}
}

// Stored folds in the keys of a store and the scripts that it has loaded.
func (d *Digest) Stored(keys []fakeredis.Key, scripts []string) {
	for _, k := range keys {
		d.Text(k.Name)
		d.Num(uint64(k.Left))
		for _, text := range k.Content {
			d.Text(text)
		}
	}
	for _, sha := range scripts {
		d.Text(sha)
	}
}

// FoldReply tells replies apart.
func FoldReply(digest *Digest, cmd redis.Cmder, err error) {
	if err != nil {
		digest.Text(err.Error())
		return
	}
	switch c := cmd.(type) {
	case *redis.IntCmd:
		digest.Num(uint64(c.Val()))
	case *redis.StringCmd:
		digest.Text(c.Val())
	case *redis.StatusCmd:
		digest.Text(c.Val())
	case *redis.BoolCmd:
		digest.Bool(c.Val())
	case *redis.Cmd:
		digest.any(c.Args())
		digest.any(c.Val())
	default:
		digest.Text(cmd.String())
	}
}

// any folds an argument or a reply of any kind in.
func (d *Digest) any(value any) {
	switch v := value.(type) {
	case string:
		d.Text(v)
	case int64:
		d.Text(strconv.FormatInt(v, 10))
	case []any:
		d.Num(uint64(len(v)))
		for _, x := range v {
			d.any(x)
		}
	default:
		d.Text(fmt.Sprint(v))
	}
}

// Held appends what is said of keys to out.
func Held(out []Holding, keys []fakeredis.Key) []Holding {
	for _, k := range keys {
		holding := Holding{Name: k.Name, Forever: k.Left == 0, Left: k.Left}
		if !k.Set && negative(k.Content) {
			holding.Negative = strings.Join(k.Content, " ")
		}
		out = append(out, holding)
	}
	return out
}

// negative reports whether a count among the contents of a key is below zero.
func negative(content []string) bool {
	return slices.ContainsFunc(content, func(text string) bool {
		if !strings.HasPrefix(text, "-") { // an error takes longer to make than to be foreseen
			return false
		}
		n, err := strconv.ParseInt(text, 10, 64)
		return err == nil && n < 0
	})
}

// Direct is the innermost hook of a client of a Redis in this process, which answers what it can without the protocol.
// Whatever else the client sends, it sends between Enter and the call of what that returns.
type Direct struct {
	Redis fakeredis.Redis
	Enter func() (leave func())
}

// DialHook implements [redis.Hook].
func (Direct) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (d Direct) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err, ok := d.Redis.Process(cmd)
		if !ok {
			defer d.Enter()()
			err = next(ctx, cmd)
		}
		return err
	}
}

// ProcessPipelineHook implements [redis.Hook]. Transactions are left to the
// connection, which knows MULTI.
func (d Direct) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		defer d.Enter()()
		return fakeredis.Pipeline(ctx, d.Redis, cmds, next)
	}
}
