package fakeredis_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// TestWatchAgreesWithRedis has two connections watch keys, and change them in turns.
func TestWatchAgreesWithRedis(t *testing.T) {
	real, ours, table := stores(t)
	table.Watch = true
	ctx := t.Context()
	var both [2][]*redis.Conn
	for i, c := range []*redis.Client{real, ours} {
		for range 2 {
			conn := c.Conn()
			both[i] = append(both[i], conn)
			t.Cleanup(func() { _ = conn.Close() })
		}
	}
	commands := []string{
		"watch k", "watch k", "watch h z", "watch", "unwatch", "multi", "multi", "exec", "exec", "discard",
		"get k", "set k 1", "set k 1 nx", "set k 2 px 100000", "incr k", "del k h", "incrby k -1",
		"expire k 100", "pexpireat k 4102444800000", "getex k pxat 4102444800000", "getex k persist", "persist k", "flushall",
		"hset h f 1", "hdel h f", "hdel h g", "hincrby h f 1", "hget h f",
		"zadd z 1 a", "zadd z 2 b", "zincrby z 0 a", "zincrby z 1 b", "sadd s a", "sadd s a", "srem s a", "watch s",
		"zrem z a", "zremrangebyscore z -inf 1", "zcard z", "incr z",
	}
	differ := func(seed uint64) error {
		r := rand.New(rand.NewPCG(seed, 1))
		var log []string
		answer := func(command string, on int) error {
			name := strings.Fields(command)[0]
			args := []any{}
			for _, a := range strings.Fields(command) {
				args = append(args, a)
			}
			table.SetNow(clock.Wall{}.Now().UnixNano())
			var said [2]string
			for i := range said {
				v, err := both[i][on].Do(ctx, args...).Result()
				said[i] = shown(name, v, err)
			}
			log = append(log, fmt.Sprintf("%d: %s -> %s", on, command, said[0]))
			if said[0] != said[1] {
				return fmt.Errorf("seed %d: %s answers %s, want %s; before it:\n%s", seed, command, said[1], said[0],
					strings.Join(log, "\n"))
			}
			return nil
		}
		for on := range 2 {
			for _, c := range []string{"multi", "exec", "flushall"} { // ends what an earlier program has begun
				for _, conns := range both {
					conns[on].Do(ctx, c)
				}
			}
		}
		var queues [2]bool
		for range 40 {
			command := commands[r.IntN(len(commands))]
			on := r.IntN(2)
			switch command {
			case "multi":
				queues[on] = true
			case "exec", "discard":
				queues[on] = false
			case "unwatch":
				if queues[on] { // which the table lacks
					continue
				}
			}
			if err := answer(command, on); err != nil {
				return err
			}
		}
		return nil
	}
	for seed := range testenv.Pick(200, 1000) {
		if err := inTime(func() error { return differ(uint64(seed)) }); err != nil {
			t.Fatal(err)
		}
	}
}
