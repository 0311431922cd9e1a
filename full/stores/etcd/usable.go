package etcd

import (
	"context"
	crand "crypto/rand"
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quotabench/quotabench/full/stores/internal/cluster"
)

// checkFor is how long the key of a check lives if it cannot be removed, in seconds.
const checkFor = 10

// usable tries what every run does on a cluster that was running already: write a key
// that expires, read it, and remove it.
func (e *Store) usable(ctx context.Context) error {
	key := family + "check-" + strings.ToLower(crand.Text())
	if _, err := e.admin.Get(ctx, key); err != nil {
		return err // first, since anyone may ask for a lease
	}
	lease, err := e.admin.Grant(ctx, checkFor)
	if err != nil {
		return err
	}
	_, err = e.admin.Put(ctx, key, "1", clientv3.WithLease(lease.ID))
	if err == nil {
		_, err = e.admin.Delete(ctx, key)
	}
	_, rerr := e.admin.Revoke(ctx, lease.ID)
	return errors.Join(err, rerr)
}

// unusable says in one line what keeps runs from a cluster that is reached, with a way
// out; "" if it is something else. text is the error without its password.
func (e *Store) unusable(err error, text string) string {
	for _, x := range []struct {
		is   error
		what string
	}{
		{rpctypes.ErrNoSpace, "is full: compact and defragment it, or raise its quota-backend-bytes, " +
			"then end the alarm NOSPACE by etcdctl alarm disarm"},
		{rpctypes.ErrCorrupt, "has raised the alarm CORRUPT: see etcdctl alarm list"},
		{rpctypes.ErrNoLeader, "has no leader: see etcdctl endpoint status"},
		{rpctypes.ErrPermissionDenied, "lets the user \"" + e.user + "\" not use the keys of a run: " +
			"etcdctl role grant-permission ROLE --prefix readwrite " + family},
	} {
		if errors.Is(rpctypes.Error(err), x.is) || strings.Contains(text, x.is.Error()) {
			return x.what
		}
	}
	if refused(err) {
		return cluster.LoginRefused
	}
	return ""
}
