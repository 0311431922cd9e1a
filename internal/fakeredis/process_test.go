package fakeredis_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/fakeredis"
)

// What Process puts into a command is what the client reads from the connection.
func TestProcessAnswersAsTheConnectionDoes(t *testing.T) {
	table := fakeredis.New()
	defer table.Close()
	client := fakeredis.Client(table)
	defer func() { _ = client.Close() }()
	ctx := t.Context()
	for _, set := range [][]any{{"set", "text", "7"}, {"hset", "hash", "f", "v"}, {"sadd", "set", "a", "", "b\r\n"}} {
		if err := client.Do(ctx, set...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]any{
		{"get", "text"}, {"get", "none"}, {"get", "hash"}, {"exists", "text"}, {"set", "text", "8", "nx"},
		{"smembers", "set"}, {"smembers", "none"}, {"smembers", "text"}, {"mget", "text", "none", "text"},
		{"eval", "return {'a', 1}", 0}, {"eval", "return {'a', {'b'}}", 0},
	} {
		for _, make := range []func() redis.Cmder{
			func() redis.Cmder { return redis.NewStringSliceCmd(ctx, args...) },
			func() redis.Cmder { return redis.NewStringCmd(ctx, args...) },
			func() redis.Cmder { return redis.NewIntCmd(ctx, args...) },
			func() redis.Cmder { return redis.NewStatusCmd(ctx, args...) },
			func() redis.Cmder { return redis.NewBoolCmd(ctx, args...) },
			func() redis.Cmder { return redis.NewCmd(ctx, args...) },
		} {
			read := make()
			direct := make()
			_ = client.Process(ctx, read)
			err, ok := table.Process(direct)
			if !ok {
				continue
			}
			// A type of command that does not fit is an error in either, in words of its own.
			if got, want := fmt.Sprintf("%#v", result(direct)),
				fmt.Sprintf("%#v", result(read)); (err == nil) != (read.Err() == nil) || err == nil && got != want {
				t.Errorf("%T %v: %s %v, from the connection %s %v", direct, args, got, err, want, read.Err())
			}
			if (err == redis.Nil) != (read.Err() == redis.Nil) { //nolint:errorlint // the client returns it as it is
				t.Errorf("%T %v: %v, from the connection %v", direct, args, err, read.Err())
			}
		}
	}
}

func result(c redis.Cmder) any {
	switch c := c.(type) {
	case *redis.StringSliceCmd:
		return c.Val()
	case *redis.StringCmd:
		return c.Val()
	case *redis.IntCmd:
		return c.Val()
	case *redis.StatusCmd:
		return c.Val()
	case *redis.BoolCmd:
		return c.Val()
	case *redis.Cmd:
		return c.Val()
	}
	return nil
}
