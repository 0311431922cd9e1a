// Package etcd is the code of etcd-counter. Programs get it by package full.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quotabench/quotabench/full/internal/cas"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/consensus"
)

// TierEtcd is the tier that decides.
const TierEtcd quota.Tier = "etcd"

func init() { strategies.BuildIn(codes.EtcdCounter, open) }

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
func (c *counter) Key(subject quota.Subject, policy *quota.Policy, index int64) string {
	return c.prefix + policy.Name + "/" + policy.Window.Label(index) + "/" + string(subject)
}

// Prepare implements [cas.Store].
func (c *counter) Prepare(context.Context) error { return nil }

// Read implements [cas.Store].
func (c *counter) Read(ctx context.Context, key string) (cas.Version, error) {
	response, err := c.etcd.Get(ctx, key)
	if err != nil {
		return cas.Version{}, err
	}
	return read(response)
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
	var response *clientv3.TxnResponse
	if c.leases == nil || span.End.IsZero() {
		response, err = put()
	} else {
		err = c.leases.with(ctx, span, func(id clientv3.LeaseID) (err error) {
			response, err = put(clientv3.WithLease(id))
			return err
		})
	}
	if err != nil || response.Succeeded {
		return cas.Version{}, err == nil, err
	}
	now, err = read((*clientv3.GetResponse)(response.Responses[0].GetResponseRange()))
	return now, false, err
}

// read is the counter of a response.
func read(response *clientv3.GetResponse) (cas.Version, error) {
	if len(response.Kvs) == 0 {
		return cas.Version{}, nil
	}
	units, err := strconv.ParseInt(string(response.Kvs[0].Value), 10, 64)
	if err != nil {
		return cas.Version{}, fmt.Errorf("key %q holds no number", response.Kvs[0].Key)
	}
	return cas.Version{Units: units, Number: response.Kvs[0].ModRevision, Known: true}, nil
}

// grace is how long keys outlive their window, for instances whose clocks are
// behind.
const grace = time.Minute

// leases has one lease for each window that is in use. All keys that this instance
// writes in a window share it: a lease for each key would double what a first
// request costs.
type leases struct {
	etcd  *clientv3.Client
	clock quota.Clock
	mu    quota.Mutex // held while a lease is granted
	held  map[time.Time]clientv3.LeaseID
}

// with calls put with the lease of a window, and once more with a new one if
// the lease has ended too early.
func (l *leases) with(ctx context.Context, span quota.Span, put func(clientv3.LeaseID) error) error {
	id, err := l.get(ctx, span, 0)
	if err != nil {
		return err
	}
	err = put(id)
	if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return err
	}
	id, err = l.get(ctx, span, id)
	if err != nil {
		return err
	}
	return put(id)
}

// get returns the window's lease, but not the one that has ended.
func (l *leases) get(ctx context.Context, span quota.Span, ended clientv3.LeaseID) (clientv3.LeaseID, error) {
	if err := l.mu.Lock(ctx); err != nil {
		return 0, err
	}
	defer l.mu.Unlock()
	if id := l.held[span.End]; id != 0 && id != ended {
		return id, nil
	}
	now := l.clock.Now()
	seconds := int64(max(span.End.Sub(now), 0)+grace)/int64(time.Second) + 1
	response, err := l.etcd.Grant(ctx, seconds)
	if err != nil {
		return 0, err
	}
	if l.held == nil {
		l.held = map[time.Time]clientv3.LeaseID{}
	}
	for end := range l.held { // windows that are over
		if now.After(end.Add(grace)) {
			delete(l.held, end)
		}
	}
	l.held[span.End] = response.ID
	return response.ID, nil
}

// maxOps is how many operations a transaction may have by etcd's defaults.
const maxOps = 128

// Provision writes the counters of the window in force. A counter that exists is
// replaced.
func (c *counter) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	for _, grant := range grants {
		if grant.Limit != policy.Limit {
			return fmt.Errorf("limit %d for %s: all subjects share the limit of policy %s, %d", grant.Limit, grant.Subject,
				policy.Name, policy.Limit)
		}
	}
	span := policy.Window.At(c.Clock.Now())
	write := func(options ...clientv3.OpOption) error {
		for batch := range slices.Chunk(grants, maxOps) {
			ops := make([]clientv3.Op, len(batch))
			for i, grant := range batch {
				key := c.Key(grant.Subject, policy, span.Index)
				ops[i] = clientv3.OpPut(key, strconv.FormatInt(grant.Used, 10), options...)
				if grant.Used == 0 {
					ops[i] = clientv3.OpDelete(key)
				}
			}
			if _, err := c.etcd.Txn(ctx).Then(ops...).Commit(); err != nil {
				return fmt.Errorf("provision %d subjects: %w", len(grants), err)
			}
		}
		return nil
	}
	if c.leases == nil || span.End.IsZero() {
		return write()
	}
	return c.leases.with(ctx, span, func(id clientv3.LeaseID) error { return write(clientv3.WithLease(id)) })
}
