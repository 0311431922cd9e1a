package zookeeper_test

import (
	"io"
	"net"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/quotabench/quotabench/full/stores/zookeeper"
	"github.com/quotabench/quotabench/internal/stores/storecheck"
	"github.com/quotabench/quotabench/stores"
)

func refused(t *testing.T, url string, want ...string) {
	t.Helper()
	z, err := zookeeper.Open(t.Context(), url, stores.Options{})
	if err == nil {
		_ = z.Close()
		t.Fatalf("opened, want %q", want)
	}
	storecheck.Error(t, err, want...)
}

// A server that cannot serve a run is refused at the start, with what it lacks.
func TestUnusableServersAreRefused(t *testing.T) {
	z := open(t)
	if _, err := z.Admin().SetACL("/", zk.WorldACL(zk.PermRead), -1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := z.Admin().SetACL("/", zk.WorldACL(zk.PermAll), -1); err != nil {
			t.Error(err)
		}
	})
	refused(t, "zk://"+z.Info().Addr, "lets users without a login make no nodes", "cdrw")
	refused(t, "zk://bob:s3cr3t@"+z.Info().Addr, `lets the user "bob" make no nodes`, "cdrw")
	good, err := zookeeper.Open(t.Context(), "zk://super:"+z.Password()+"@"+z.Info().Addr, stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := good.Close(); err != nil {
		t.Error(err)
	}
}

// TestServersThatAreNotReady: a server without a leader answers so.
func TestServersThatAreNotReady(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(c, make([]byte, 4))
			_, _ = io.WriteString(c, "This ZooKeeper instance is not currently serving requests\n")
			_ = c.Close()
		}
	}()
	refused(t, "zk://"+l.Addr().String(), "serves no requests", "starting")
}
