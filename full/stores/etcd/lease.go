package etcd

import (
	"context"
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quotabench/quotabench/full/stores/internal/grpcstore"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/stores/leases"
	"github.com/quotabench/quotabench/stores"
)

const (
	// family begins every key of every run.
	family = "quotabench:"
	// holdingPrefix begins a key for each scope that a process keeps: its owner. It does
	// not expire. No scope's prefix begins it: those have no hyphen.
	holdingPrefix = family + "holding-"
	// leasePrefix begins a key for each process, which expires unless it is renewed.
	leasePrefix = family + "lease-"
)

// board is the cluster as a [leases.Board].
type board struct {
	*Store
	// lease is the lease by which the key of this process expires; 0 if there is
	// none yet. Its methods are not called at once.
	lease clientv3.LeaseID
}

func leaseKey() string { return leasePrefix + server.Us().Run }

// Name implements [leases.Board].
func (*board) Name(scope stores.Scope) string { return scope.Prefix() }

// Entries implements [leases.Board].
func (b *board) Entries(ctx context.Context) (out []leases.Entry, err error) {
	held, err := b.admin.Get(ctx, holdingPrefix, clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	renewed := map[string]bool{}
	if held.Count > 0 {
		keys, err := b.admin.Get(ctx, leasePrefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			return nil, err
		}
		for _, keyValue := range keys.Kvs {
			renewed[string(keyValue.Key[len(leasePrefix):])] = true
		}
	}
	for _, keyValue := range held.Kvs {
		owner, _ := server.ParseOwner(string(keyValue.Value))
		out = append(out, leases.Entry{
			Scope: stores.Scope(keyValue.Key[len(holdingPrefix):]), Text: string(keyValue.Value), Version: keyValue.ModRevision,
			Renewed: renewed[owner.Run],
		})
	}
	return out, nil
}

// Enter implements [leases.Board].
func (b *board) Enter(ctx context.Context, old leases.Entry, text string) (bool, error) {
	key := holdingPrefix + string(old.Scope)
	response, err := b.admin.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=",
		old.Version)).Then(clientv3.OpPut(key, text)).Commit()
	return err == nil && response.Succeeded, err
}

// Renew implements [leases.Board].
func (b *board) Renew(ctx context.Context, scopes []stores.Scope) error {
	us := server.Us().Encode()
	err := b.put(ctx, us)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		response, gerr := b.admin.Grant(ctx, int64(server.LeaseLife.Seconds()))
		if gerr != nil {
			return gerr
		}
		b.lease = response.ID
		err = b.put(ctx, us)
	}
	if err != nil {
		return err
	}
	for _, scope := range scopes {
		if _, err := b.Enter(ctx, leases.Entry{Scope: scope}, us); err != nil {
			return err
		}
	}
	return nil
}

// put writes the key of this process, and has it live on.
func (b *board) put(ctx context.Context, us string) error {
	if b.lease == 0 {
		return rpctypes.ErrLeaseNotFound
	}
	if _, err := b.admin.Put(ctx, leaseKey(), us, clientv3.WithLease(b.lease)); err != nil {
		return err // at once, if there is no server: the next call waits for one
	}
	ctx, cancel := context.WithTimeout(ctx, grpcstore.DialTimeout)
	defer cancel()
	_, err := b.admin.KeepAliveOnce(ctx, b.lease)
	return err
}

// Leave implements [leases.Board].
func (b *board) Leave(ctx context.Context, scope stores.Scope, last bool) error {
	if last { // before the entry, by which the next start finds what a killed process left
		_, err := b.admin.Delete(ctx, leaseKey())
		if err == nil && b.lease != 0 {
			_, err = b.admin.Revoke(ctx, b.lease)
			b.lease = 0
		}
		if err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) { // the server may have lost it
			return err
		}
	}
	_, err := b.admin.Delete(ctx, holdingPrefix+string(scope))
	return err
}

// Clear implements [leases.Board].
func (b *board) Clear(ctx context.Context, scope stores.Scope) (int64, error) {
	response, err := b.admin.Delete(ctx, scope.Prefix(), clientv3.WithPrefix())
	if err != nil {
		return 0, err
	}
	return response.Deleted, nil
}

// Count implements [leases.Board].
func (b *board) Count(ctx context.Context, _ []stores.Scope) (map[stores.Scope]int64, error) {
	counts := map[stores.Scope]int64{}
	err := b.list(ctx, family, func(key string, _ int64) {
		if scope, _, ok := strings.Cut(key[len(family):], ":"); ok {
			counts[stores.Scope(scope)]++
		}
	})
	return counts, err
}
