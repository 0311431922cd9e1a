package planted

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// refunding counts units per window, and gives them back.
type refunding struct {
	env    strategies.Env
	rdb    redis.UniversalClient
	defect string
}

var takeScript = redis.NewScript(`local n = tonumber(redis.call('GET', KEYS[1]) or '0')
if n + ARGV[2] > tonumber(ARGV[1]) then return 0 end
redis.call('INCRBY', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1`)

var giveScript = redis.NewScript(`if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
return redis.call('DECRBY', KEYS[1], ARGV[1])`)

func (r *refunding) key(subject quota.Subject, policy *quota.Policy, window int64) string {
	return fmt.Sprintf("%s%s:%s:%d", r.env.Prefix, policy.Name, subject, window)
}

// Take implements [strategies.Strategy].
func (r *refunding) Take(ctx context.Context, req quota.Request) (decision quota.Decision, err error) {
	window := req.Policy.Window.At(r.env.Clock.Now())
	charged := req.Units
	if r.defect == "units" {
		charged = 1
	}
	n, err := takeScript.Run(ctx, r.rdb, []string{r.key(req.Subject, req.Policy, window.Index)},
		req.Policy.Limit, req.Units, charged, req.Policy.Window.RealLength().Milliseconds()).Int64()
	if n == 1 {
		decision.Reservation = quota.Reservation{Request: req, Window: window.Index}
	}
	decision.Admitted = n == 1
	decision.Tier = quota.TierRedis
	decision.Remaining = -1
	return decision, err
}

// Refund implements [strategies.Refunder].
func (r *refunding) Refund(ctx context.Context, res quota.Reservation) error {
	window := res.Window
	if r.defect == "window" {
		window = res.Request.Policy.Window.At(r.env.Clock.Now()).Index
	}
	key := r.key(res.Request.Subject, res.Request.Policy, window)
	if r.defect == "below zero" {
		return r.rdb.DecrBy(ctx, key, res.Request.Units).Err()
	}
	err := giveScript.Run(ctx, r.rdb, []string{key}, res.Request.Units).Err()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return err
}

// Close implements [strategies.Strategy].
func (r *refunding) Close(context.Context) error { return nil }

func settling() []Limiter {
	of := func(name, wrong, defect string) Limiter {
		meta := strategies.Meta{
			Name: name, Doc: "counts units, which can be given back", Form: strategies.Library,
			Needs: []strategies.Need{strategies.NeedRedis},
			Kinds: []quota.Kind{quota.Fixed}, Counts: quota.CountsNothing, GivesBack: true,
			Guarantee: []quota.Clause{quota.Exactly()},
			Open: func(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
				return &refunding{env: env, rdb: strategies.Redis(env), defect: defect}, nil
			},
		}
		return Limiter{Name: name, Defect: wrong, Meta: meta}
	}
	return []Limiter{
		of("refund", "", ""),
		of("refund-window", "it gives units back to the window in force, and not to the one that they are of", "window"),
		of("refund-later", "units that are given back after their window make a counter below zero that never expires",
			"below zero"),
		of("units", "a request of several units is charged as one", "units"),
	}
}
