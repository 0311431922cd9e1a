// Package etcd is the code of etcd-counter. Programs get it by package full.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quotabench/quotabench/full/internal/cas"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/consensus"
)

// TierEtcd is the tier that decides.
const TierEtcd quota.Tier = "etcd"

func init() { strategies.BuildIn(consensus.EtcdCounter, open) }

// counter is one instance of etcd-counter.
type counter struct {
	cas.Counter
	etcd   *clientv3.Client
	prefix string
	leases *leases // nil if keys stay; they end by themselves
}

var _ strategies.Provisioner = (*counter)(nil)

func open(_ context.Context, env strategies.Env) (strategies.Strategy, error) {
	client, ok := env.Clients[string(consensus.NeedEtcd)].(*clientv3.Client)
	if !ok {
		return nil, errors.New("etcd-counter needs etcd")
	}
	c := &counter{etcd: client, prefix: env.Prefix}
	c.Counter = cas.Counter{Store: c, Clock: env.Clock, Tier: TierEtcd, Writes: "transactions"}
	if env.Options["ttl"] != "none" {
		c.leases = &leases{etcd: client, clock: env.Clock, mu: env.Clock.NewMutex()}
	}
	return c, nil
}

// Key implements [cas.Store]. The subject comes last, so that no other part can be
// taken for a piece of it.
func (c *counter) Key(s quota.Subject, p *quota.Policy, index int64) string {
	return c.prefix + p.Name + "/" + p.Window.Label(index) + "/" + string(s)
}

// Prepare implements [cas.Store].
func (c *counter) Prepare(context.Context) error { return nil }

// Read implements [cas.Store].
func (c *counter) Read(ctx context.Context, key string) (cas.Version, error) {
	r, err := c.etcd.Get(ctx, key)
	if err != nil {
		return cas.Version{}, err
	}
	return read(r)
}

// Swap implements [cas.Store]. The version is the revision of the last change, 0 if
// there is no counter.
func (c *counter) Swap(
	ctx context.Context, key string, span quota.Span, at cas.Version, units int64,
) (now cas.Version, done bool, err error) {
	put := func(options ...clientv3.OpOption) (*clientv3.TxnResponse, error) {
		return c.etcd.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(key), "=", at.Number)).
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
		return cas.Version{}, err == nil, err
	}
	now, err = read((*clientv3.GetResponse)(r.Responses[0].GetResponseRange()))
	return now, false, err
}

// read is the counter of a response.
func read(r *clientv3.GetResponse) (cas.Version, error) {
	if len(r.Kvs) == 0 {
		return cas.Version{}, nil
	}
	units, err := strconv.ParseInt(string(r.Kvs[0].Value), 10, 64)
	if err != nil {
		return cas.Version{}, fmt.Errorf("key %q holds no number", r.Kvs[0].Key)
	}
	return cas.Version{Units: units, Number: r.Kvs[0].ModRevision, Known: true}, nil
}
