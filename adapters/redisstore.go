package adapters

import (
	"context"
	"errors"

	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
	seth "github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-redisstore"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

func init() {
	library(strategies.Meta{
		Name: "lib-sethvargo-redis", Doc: "sethvargo/go-redisstore: a bucket in a hash that is filled once per interval, " +
			"in one Lua script",
		Needs: []strategies.Need{strategies.NeedRedis}, Kinds: []quota.Kind{quota.Rolling},
		Serves: single, Foreign: true,
		// Intervals begin with the first request of all: the limit at the end of one, and again at the beginning of the next.
		Guarantee: []quota.Clause{{
			Property: quota.PropertyLeak, Formula: "L", Tolerates: []quota.Fault{quota.FaultClock},
			Bound: func(params quota.Params) int64 { return params.Limit },
		}},
	}, func(env strategies.Env, policy *quota.Policy) (limiter, error) {
		pool := &redigo.Pool{Dial: func() (redigo.Conn, error) { return redigoConn{strategies.Redis(env)}, nil }}
		store, err := redisstore.NewWithPool(&redisstore.Config{Tokens: uint64(policy.Limit),
			Interval: policy.Window.RealLength()}, pool)
		return sethvargoRedis{store}, err
	})
}

type sethvargoRedis struct{ seth.Store }

func (s sethvargoRedis) take(ctx context.Context, key string, units int64) (int64, error) {
	_, _, _, ok, err := s.Take(ctx, key)
	return all(err == nil && ok, units), err
}

func (s sethvargoRedis) close() error { return s.Close(context.Background()) }

// redigoConn is a connection of redigo's with its commands on a client that is given.
type redigoConn struct{ client redis.UniversalClient }

var errNoPipeline = errors.New("commands are sent one by one here")

func (redigoConn) Close() error                  { return nil }
func (redigoConn) Err() error                    { return nil }
func (redigoConn) Send(string, ...any) error     { return errNoPipeline }
func (redigoConn) Flush() error                  { return errNoPipeline }
func (redigoConn) Receive() (reply any, _ error) { return nil, errNoPipeline }

// Do implements redigo's Conn. A pool sends no command as it takes a connection back.
func (c redigoConn) Do(name string, args ...any) (any, error) {
	if name == "" {
		return nil, nil
	}
	reply, err := c.client.Do(context.Background(), append([]any{name}, args...)...).Result()
	var refused redis.Error
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case errors.As(err, &refused):
		return nil, redigo.Error(refused.Error())
	case err != nil:
		return nil, err
	}
	return bulk(reply), nil
}

// bulk is a reply as redigo has it: strings are bytes.
func bulk(reply any) any {
	switch r := reply.(type) {
	case string:
		return []byte(r)
	case []any:
		for i := range r {
			r[i] = bulk(r[i])
		}
	}
	return reply
}
