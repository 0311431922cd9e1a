package strategytest

import (
	"context"
	"errors"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// full is everything that a strategy can be.
type full interface {
	strategies.Strategy
	strategies.Refunder
	strategies.Committer
	strategies.Viewer
	strategies.Provisioner
	strategies.LimitSetter
}

// double is a right strategy that talks to Redis before each decision, with parts
// that can be replaced by wrong ones.
type double struct {
	full
	env    strategies.Env
	take   func(d *double, ctx context.Context, req quota.Request) (quota.Decision, error)
	refund func(d *double, ctx context.Context, r quota.Reservation) error
	commit func(d *double, ctx context.Context, r quota.Reservation, actual int64) error
	used   func(d *double, ctx context.Context, s quota.Subject, p *quota.Policy) ([]quota.Reading, error)
	grant  func(d *double, ctx context.Context, p *quota.Policy, grants []strategies.Grant) error
	limit  func(d *double, ctx context.Context, p *quota.Policy, subjects []quota.Subject) error
	close  func(d *double)
	jobs   []strategies.Job
}

func (d *double) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	if d.take != nil {
		return d.take(d, ctx, req)
	}
	return d.right(ctx, req)
}

func (d *double) right(ctx context.Context, req quota.Request) (quota.Decision, error) {
	if err := strategies.Redis(d.env).Ping(ctx).Err(); err != nil {
		return quota.Decision{}, err
	}
	return d.full.Take(ctx, req)
}

// withPolicy decides under another policy, without its showing.
func (d *double) withPolicy(ctx context.Context, req quota.Request,
	change func(*quota.Policy)) (quota.Decision, error) {
	other := *req.Policy
	change(&other)
	inner := req
	inner.Policy = &other
	dec, err := d.right(ctx, inner)
	if dec.Admitted {
		dec.Reservation.Request = req
	}
	return dec, err
}

// partly grants up to so many units of a request: what there is, if it is less.
func (d *double) partly(ctx context.Context, req quota.Request, most int64) (quota.Decision, error) {
	asked := req.Units
	for req.Units = min(asked, most); ; {
		dec, err := d.right(ctx, req)
		if err != nil {
			return dec, err
		}
		if dec.Admitted && req.Units < asked {
			dec.Granted = req.Units
		}
		if dec.Admitted || dec.Remaining <= 0 {
			return dec, nil
		}
		req.Units = dec.Remaining
	}
}

func (d *double) Refund(ctx context.Context, r quota.Reservation) error {
	if d.refund != nil {
		return d.refund(d, ctx, r)
	}
	return d.full.Refund(ctx, r)
}

func (d *double) Commit(ctx context.Context, r quota.Reservation, actual int64) error {
	if d.commit != nil {
		return d.commit(d, ctx, r, actual)
	}
	return d.full.Commit(ctx, r, actual)
}

func (d *double) Used(ctx context.Context, s quota.Subject, p *quota.Policy) ([]quota.Reading, error) {
	if d.used != nil {
		return d.used(d, ctx, s, p)
	}
	return d.full.Used(ctx, s, p)
}

func (d *double) Provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
	if d.grant != nil {
		return d.grant(d, ctx, p, grants)
	}
	return d.full.Provision(ctx, p, grants)
}

func (d *double) Jobs() []strategies.Job { return d.jobs }

func (d *double) Close(ctx context.Context) error {
	if d.close != nil {
		d.close(d)
	}
	return d.full.Close(ctx)
}

// unlimited is the limit of an inner strategy that is not to reject.
const unlimited = 1 << 40

func (d *double) SetLimit(ctx context.Context, p *quota.Policy, subjects []quota.Subject) error {
	if d.limit != nil {
		return d.limit(d, ctx, p, subjects)
	}
	return d.full.SetLimit(ctx, p, subjects)
}

// sample is the Meta of a double.
func sample(change func(*double)) *strategies.Meta {
	exact, err := strategies.Lookup("exact")
	if err != nil {
		panic(err)
	}
	m := *exact
	m.Name = "double"
	m.Source = "the test"
	m.Form = strategies.Reference
	m.Needs = []strategies.Need{strategies.NeedRedis}
	m.Open = func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
		if env.Options["mode"] == "bad" {
			return nil, errors.New("not built in")
		}
		inner, err := exact.Open(ctx, env)
		if err != nil {
			return nil, err
		}
		d := &double{full: inner.(full), env: env, jobs: []strategies.Job{{
			Name: "tidy", Every: time.Hour, Run: func(context.Context) (bool, error) { return false, nil },
		}}}
		if change != nil {
			change(d)
		}
		return d, nil
	}
	return &m
}
