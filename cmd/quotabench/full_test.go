package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestLargeClientsComeWithTheTag: who wants Redis and PostgreSQL alone is not to carry
// the clients of other stores.
func TestLargeClientsComeWithTheTag(t *testing.T) {
	needs := func(args ...string) string {
		out, err := exec.Command("go", append([]string{"list", "-deps"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	without, with := needs("."), needs("-tags", "full", ".")
	for _, client := range []string{"go.etcd.io/etcd/client", "github.com/go-zookeeper/zk", "github.com/nats-io/nats.go", "google.golang.org/grpc", "github.com/envoyproxy/go-control-plane"} {
		if strings.Contains(without, client) {
			t.Errorf("the command needs %s without the tag", client)
		}
		if !strings.Contains(with, client) {
			t.Errorf("the command lacks %s with the tag", client)
		}
	}
}
