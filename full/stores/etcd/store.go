package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quotabench/quotabench/stores"
)

// page is how many keys are listed at a time.
const page = 1000

// Usage counts the keys of scope. Those without a lease never expire.
func (e *Store) Usage(ctx context.Context, scope stores.Scope) (usage stores.Usage, err error) {
	err = e.list(ctx, scope.Prefix(), func(_ string, lease int64) {
		usage.Keys++
		if lease == 0 {
			usage.WithoutTTL++
		}
	})
	if err != nil {
		return stores.Usage{}, err
	}
	return usage, nil
}

// list calls f for each key with the prefix, and the lease that it expires by.
func (e *Store) list(ctx context.Context, prefix string, f func(key string, lease int64)) error {
	from := prefix
	end := clientv3.GetPrefixRangeEnd(prefix)
	for {
		response, err := e.admin.Get(ctx, from, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(page))
		if err != nil {
			return fmt.Errorf("list keys under %q: %w", prefix, err)
		}
		for _, keyValue := range response.Kvs {
			f(string(keyValue.Key), keyValue.Lease)
		}
		if !response.More {
			return nil
		}
		from = string(response.Kvs[len(response.Kvs)-1].Key) + "\x00"
	}
}

// remove removes the keys of scope, and no others. From a server that was started here
// it also removes their history, which would slow later strategies down.
func (e *Store) remove(ctx context.Context, scope stores.Scope) error {
	response, err := e.admin.Delete(ctx, scope.Prefix(), clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("wipe keys under %q: %w", scope.Prefix(), err)
	}
	if e.Owned() && response.Deleted > 0 {
		if _, err := e.admin.Compact(ctx, response.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
			return fmt.Errorf("remove the history of %q: %w", scope.Prefix(), err)
		}
	}
	return nil
}

// reconnect makes a client that logs in anew: etcd forgets logins when it starts, and a
// client that has one goes on to show it.
func (e *Store) reconnect(context.Context) error {
	client, err := e.client(stores.ConnOptions{})
	if err != nil {
		return err
	}
	_ = e.admin.Close()
	e.admin = client
	return nil
}
