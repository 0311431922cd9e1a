package etcd_test

import (
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quotabench/quotabench/full/internal/keepcheck"
	"github.com/quotabench/quotabench/full/stores/etcd"
	"github.com/quotabench/quotabench/stores"
)

func TestKeeper(t *testing.T) {
	s := open(t)
	t.Setenv("ETCDCTL_PASSWORD", s.Password())
	e, err := etcd.Open(t.Context(), "http://root@"+s.Info().Addr, stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	keepcheck.Keeps(t, e, keepcheck.Kept{
		Board: e.Board(), Things: 1,
		Put: func(ctx context.Context, scope stores.Scope) error {
			_, err := e.Admin().Put(ctx, scope.Prefix()+"k", "1")
			return err
		},
		There: func(ctx context.Context, scope stores.Scope) bool {
			r, err := e.Admin().Get(ctx, scope.Prefix()+"k")
			return err == nil && r.Count == 1
		},
		Vouch: func(ctx context.Context, _ stores.Scope, run string, runs bool) (err error) {
			if key := "quotabench:lease-" + run; runs {
				_, err = e.Admin().Put(ctx, key, "")
			} else {
				_, err = e.Admin().Delete(ctx, key)
			}
			return err
		},
	})
	if r, err := e.Admin().Get(t.Context(), "quotabench:", clientv3.WithPrefix()); err != nil || r.Count != 0 {
		t.Errorf("left: %v (%v)", r, err)
	}
}
