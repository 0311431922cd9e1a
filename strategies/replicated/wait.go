package replicated

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// What redis-wait does if too few replicas have a charge in time.
const (
	fewError = "error"
	fewUndo  = "undo"
	fewAdmit = "admit"
)

var redisWaitMeta = meta(strategies.Meta{
	Name:  "redis-wait",
	Needs: []strategies.Need{strategies.NeedReplicated},
	Options: []quota.Option{
		{Name: "replicas", Default: "1", Type: "int", Min: "1", Max: "5"},
		{Name: "timeout", Default: "1s", Type: "duration", Min: "1ms", Max: "4s"},
		{Name: "few", Default: fewError, Values: []string{fewError, fewUndo, fewAdmit}},
	},
	Guarantee: []quota.Clause{
		// As for redis-durable. WAIT adds nothing to it while the master lives.
		quota.Exactly(quota.FaultCrash, quota.FaultClock, quota.FaultOutage, quota.FaultLimit),
		// A charge that its caller heard of is in the replica that takes over.
		family.ExactlyUnless("L", func(params quota.Params) bool { return params.Options["few"] == fewAdmit },
			quota.FaultCrash, quota.FaultClock, quota.FaultOutage, quota.FaultLimit, quota.FaultFailover).
			Under("if every replica is waited for; few=admit: any"),
	},
	Open: func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
		counter, err := openCounter(ctx, env, strategies.NeedReplicated)
		if err != nil {
			return nil, err
		}
		wait := &redisWait{counter: counter, replicas: env.Options.Int("replicas"), timeout: env.Options.Duration("timeout"),
			few: env.Options["few"]}
		counter.call = wait.runAndWait
		return wait, nil
	},
})

// redisWait is a counter whose caller hears of a change once replicas have it.
type redisWait struct {
	*counter
	replicas int64
	timeout  time.Duration
	few      string
	short    atomic.Int64 // charges that too few replicas had in time
}

// runAndWait runs a script, and WAIT right behind it on the same connection: WAIT is
// about the writes of its own connection. It names no key, so in a cluster the master that has the key is sent both.
func (s *redisWait) runAndWait(ctx context.Context, script *redis.Script, key string, args ...any) ([]int64, error) {
	var answer, acked *redis.Cmd
	master := s.redis
	if client, ok := s.redis.(*redis.ClusterClient); ok {
		var err error
		master, err = client.MasterForKey(ctx, key)
		if err != nil {
			return nil, err
		}
	}
	send := func(run func(context.Context, redis.Scripter, []string, ...any) *redis.Cmd) error {
		_, err := master.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			answer = run(ctx, pipe, []string{key}, args...)
			acked = pipe.Do(ctx, "WAIT", s.replicas, s.timeout.Milliseconds())
			return nil
		})
		return err
	}
	err := send(script.EvalSha)
	if redis.HasErrorPrefix(err, "NOSCRIPT") { // Redis was started anew
		err = send(script.Eval)
	}
	if err != nil {
		return nil, err
	}
	res, err := answer.Int64Slice()
	if err != nil {
		return nil, err
	}
	have, err := acked.Int64()
	if err != nil {
		return nil, fmt.Errorf("wait for replicas: %w", err)
	}
	if have >= s.replicas || script != takeScript || len(res) == 0 || res[0] != counted {
		return res, nil
	}
	s.short.Add(1)
	if s.few == fewAdmit {
		return res, nil
	}
	err = fmt.Errorf("%d of %d replicas have the charge after %v, %w: %w", have, s.replicas, s.timeout,
		strategies.ErrPrescribed, context.DeadlineExceeded)
	if s.few == fewUndo {
		err = errors.Join(err, refundScript.Run(ctx, s.redis, []string{key}, args[0]).Err())
	}
	return nil, err
}

// Measures implements [strategies.Meter].
func (s *redisWait) Measures() []strategies.Measure {
	return []strategies.Measure{{Name: "short-waits", Unit: "charges", Value: s.short.Load()}}
}
