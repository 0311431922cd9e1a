package etcd_test

import (
	"context"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quotabench/quotabench/full/stores/etcd"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/stores"
)

// A cluster that cannot serve a run is refused at the start, with what it lacks.
func TestUnusableServersAreRefused(t *testing.T) {
	open(t) // skips if there is none
	e, err := etcd.Open(t.Context(), "process",
		stores.Options{Settings: map[string]string{"quota-backend-bytes": "1000000"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	ctx := context.Background()
	c := e.Admin()
	refused := func(user string, want ...string) {
		t.Helper()
		s, err := etcd.Open(ctx, "http://"+user+"@"+e.Info().Addr, stores.Options{})
		if err == nil {
			_ = s.Close()
			t.Fatalf("opened, want %q", want)
		}
		storecheck.Error(t, err, want...)
	}
	for _, step := range []func() error{
		func() error { _, err := c.UserAdd(ctx, "bob", "s3cr3t"); return err },
		func() error { _, err := c.RoleAdd(ctx, "some"); return err },
		func() error { _, err := c.UserGrantRole(ctx, "bob", "some"); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	refused("bob:s3cr3t", `lets the user "bob" not use the keys of a run`, "--prefix readwrite quotabench:")
	grant := func(t clientv3.PermissionType) error {
		_, err := c.RoleGrantPermission(ctx, "some", "quotabench:", clientv3.GetPrefixRangeEnd("quotabench:"), t)
		return err
	}
	if err := grant(clientv3.PermissionType(clientv3.PermRead)); err != nil {
		t.Fatal(err)
	}
	refused("bob:s3cr3t", "not use the keys of a run")
	refused("bob:wrong-s3cr3", "refuses the login")
	if err := grant(clientv3.PermissionType(clientv3.PermReadWrite)); err != nil {
		t.Fatal(err)
	}
	good, err := etcd.Open(ctx, "http://bob:s3cr3t@"+e.Info().Addr, stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := good.Prepare(ctx, "mine"); err != nil {
		t.Errorf("a user of that one prefix: %v", err)
	}
	if err := good.Wipe(ctx, "mine"); err != nil {
		t.Error(err)
	}
	if err := good.Close(); err != nil {
		t.Error(err)
	}
	if r, err := c.Get(ctx, "quotabench:", clientv3.WithPrefix()); err != nil || r.Count != 0 {
		t.Errorf("left: %v (%v)", r, err)
	}
	for i := 0; err == nil; i++ {
		_, err = c.Put(ctx, "big", strings.Repeat("x", 200_000))
		if i == 100 {
			t.Fatal("it does not get full")
		}
	}
	refused("root:"+e.Password(), "is full", "quota-backend-bytes", "alarm disarm")
}
