package etcd

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quotabench/quotabench/quota"
)

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
	if err = put(id); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return err
	}
	if id, err = l.get(ctx, span, id); err != nil {
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
	r, err := l.etcd.Grant(ctx, seconds)
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
	l.held[span.End] = r.ID
	return r.ID, nil
}
