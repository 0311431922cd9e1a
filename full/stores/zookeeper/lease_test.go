package zookeeper_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/quotabench/quotabench/full/internal/keepcheck"
	"github.com/quotabench/quotabench/full/stores/zookeeper"
	"github.com/quotabench/quotabench/stores"
)

func TestKeeper(t *testing.T) {
	z, err := zookeeper.Open(t.Context(), "zk://"+open(t).Info().Addr, stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = z.Close() }()
	create := func(path string) error {
		_, err := z.Admin().Create(path, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
		return err
	}
	keepcheck.Keeps(t, z, keepcheck.Kept{
		Board: z.Board(), Things: 2,
		Put: func(_ context.Context, scope stores.Scope) error {
			if err := create("/" + scope.Schema()); err != nil {
				return err
			}
			return create("/" + scope.Schema() + "/b")
		},
		There: func(_ context.Context, scope stores.Scope) bool {
			there, _, err := z.Admin().Exists("/" + scope.Schema() + "/b")
			return err == nil && there
		},
		Vouch: func(_ context.Context, _ stores.Scope, run string, runs bool) error {
			path := "/quotabench-lease-" + run
			if runs {
				return create(path)
			}
			return z.Admin().Delete(path, -1)
		},
	})
	names, _, err := z.Admin().Children("/")
	if err != nil || strings.Contains(strings.Join(names, " "), "quotabench-") {
		t.Errorf("left: %q (%v)", names, err)
	}
}
