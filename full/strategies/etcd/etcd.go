// Package etcd is the code of etcd-counter. Programs get it by package full.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/consensus"
)

// TierEtcd is the tier that decides.
const TierEtcd quota.Tier = "etcd"

func init() { strategies.BuildIn(consensus.EtcdCounter, open) }

// counter is one instance of etcd-counter.
type counter struct {
	etcd   *clientv3.Client
	clock  quota.Clock
	prefix string
	leases *leases // nil if keys stay
	// retries are transactions that found another revision than the one read.
	retries, successes strategies.Tally
}

var (
	_ strategies.Refunder    = (*counter)(nil)
	_ strategies.Viewer      = (*counter)(nil)
	_ strategies.Provisioner = (*counter)(nil)
	_ strategies.Meter       = (*counter)(nil)
)

func open(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
	client, ok := env.Clients[string(consensus.NeedEtcd)].(*clientv3.Client)
	if !ok {
		return nil, errors.New("etcd-counter needs etcd")
	}
	c := &counter{etcd: client, clock: env.Clock, prefix: env.Prefix}
	if env.Options["ttl"] != "none" {
		c.leases = &leases{etcd: client, clock: env.Clock, mu: env.Clock.NewMutex()}
	}
	return c, nil
}

// version is a counter as it was read.
type version struct {
	units int64
	// revision of the last change; 0 if there is no counter.
	revision int64
}

// key of a subject's counter in one window. The subject comes last, so that no
// other part can be taken for a piece of it.
func (c *counter) key(s quota.Subject, p *quota.Policy, index int64) string {
	return c.prefix + p.Name + "/" + p.Window.Label(index) + "/" + string(s)
}

// Take implements [strategies.Strategy].
func (c *counter) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	now := c.clock.Now()
	span := req.Policy.Window.At(now)
	d := quota.Decision{Tier: TierEtcd}
	left, err := c.change(ctx, c.key(req.Subject, req.Policy, span.Index), span, func(used int64) (int64, bool) {
		return used + req.Units, req.Units <= req.Policy.Limit-used
	})
	if err != nil {
		return quota.Decision{}, fmt.Errorf("charging %s: %w", req.Subject, err)
	}
	d.Remaining = max(req.Policy.Limit-left.units, 0)
	if left.changed {
		d.Admitted = true
		d.Reservation = quota.Reservation{Request: req, Window: span.Index}
	} else if req.Policy.Window.Kind.Tumbling() {
		d.RetryAfter = span.End.Sub(now)
	}
	return d, nil
}

// Refund subtracts the reserved units from the window that was charged. It
// remembers nothing: a reservation that is refunded twice gives its units back
// twice.
func (c *counter) Refund(ctx context.Context, r quota.Reservation) error {
	req := r.Request
	if req.Policy == nil {
		return errors.New("refund of a reservation that no admitted request made")
	}
	span := req.Policy.Window.Span(r.Window)
	_, err := c.change(ctx, c.key(req.Subject, req.Policy, r.Window), span, func(used int64) (int64, bool) {
		return max(used-req.Units, 0), used > 0
	})
	if err != nil {
		return fmt.Errorf("refunding %s: %w", req.Subject, err)
	}
	return nil
}

// outcome is a counter at the end of a change. changed is false if the change
// was turned down.
type outcome struct {
	units   int64
	changed bool
}

// change applies f to a counter, again and again until no other caller comes in
// between, or until f turns the value down.
func (c *counter) change(ctx context.Context, key string, span quota.Span, f func(used int64) (units int64, ok bool)) (outcome, error) {
	r, err := c.etcd.Get(ctx, key)
	if err != nil {
		return outcome{}, err
	}
	at, err := read(r)
	if err != nil {
		return outcome{}, err
	}
	for {
		units, ok := f(at.units)
		if !ok {
			return outcome{at.units, false}, nil
		}
		now, done, err := c.swap(ctx, key, span, at, units)
		switch {
		case err != nil:
			return outcome{}, err
		case done:
			c.successes.Add(1)
			return outcome{units, true}, nil
		}
		at = now
		c.retries.Add(1)
	}
}

// swap writes units if the counter is at the version that was read, and otherwise
// returns the version that it is at.
func (c *counter) swap(ctx context.Context, key string, span quota.Span, at version, units int64) (now version, done bool, err error) {
	put := func(options ...clientv3.OpOption) (*clientv3.TxnResponse, error) {
		return c.etcd.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(key), "=", at.revision)).
			Then(clientv3.OpPut(key, strconv.FormatInt(units, 10), options...)).
			Else(clientv3.OpGet(key)).
			Commit()
	}
	var r *clientv3.TxnResponse
	if c.leases == nil || span.End.IsZero() {
		r, err = put()
	} else {
		err = c.leases.with(ctx, span, func(id clientv3.LeaseID) (err error) {
			r, err = put(clientv3.WithLease(id))
			return err
		})
	}
	if err != nil || r.Succeeded {
		return version{}, err == nil, err
	}
	now, err = read((*clientv3.GetResponse)(r.Responses[0].GetResponseRange()))
	return now, false, err
}

// read is the counter of a response.
func read(r *clientv3.GetResponse) (version, error) {
	if len(r.Kvs) == 0 {
		return version{}, nil
	}
	units, err := strconv.ParseInt(string(r.Kvs[0].Value), 10, 64)
	if err != nil {
		return version{}, fmt.Errorf("key %q holds no number", r.Kvs[0].Key)
	}
	return version{units, r.Kvs[0].ModRevision}, nil
}

// Used implements [strategies.Viewer].
func (c *counter) Used(ctx context.Context, s quota.Subject, p *quota.Policy) ([]quota.Reading, error) {
	r, err := c.etcd.Get(ctx, c.key(s, p, p.Window.At(c.clock.Now()).Index))
	if err != nil {
		return nil, fmt.Errorf("reading what %s has used: %w", s, err)
	}
	at, err := read(r)
	if err != nil {
		return nil, err
	}
	return []quota.Reading{{Tier: TierEtcd, Units: at.units, Known: at.revision != 0}}, nil
}

// Measures implements [strategies.Meter].
func (c *counter) Measures() []strategies.Measure {
	return []strategies.Measure{
		{Name: "retries", Unit: "transactions", Value: c.retries.Load()},
		{Name: "successes", Unit: "transactions", Value: c.successes.Load()},
	}
}

// Close implements [strategies.Strategy]. Leases end by themselves.
func (c *counter) Close(context.Context) error { return nil }
