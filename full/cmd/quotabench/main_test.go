package main

import (
	"os/exec"
	"strings"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/strategies"
)

// TestEveryStrategyIsBuiltIn: the strategies that other programs only list have their code here.
func TestEveryStrategyIsBuiltIn(t *testing.T) {
	elsewhere := 0
	for _, m := range strategies.All() {
		if err := m.BuiltIn(); err != nil {
			t.Errorf("%s %v", m.Name, err)
		}
		if m.Elsewhere != "" {
			elsewhere++
		}
	}
	if elsewhere == 0 {
		t.Error("no strategy needs this program: this test shows nothing")
	}
}

// TestLargeClientsAreHereAlone: a user who needs Redis and PostgreSQL alone does not build
// the clients of other stores.
func TestLargeClientsAreHereAlone(t *testing.T) {
	needs := func(pkg string) string {
		out, err := exec.Command("go", "list", "-deps", pkg).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	small := needs("github.com/quotabench/quotabench/cmd/quotabench")
	full := needs(".")
	for _, client := range []string{"go.etcd.io/etcd/client", "github.com/go-zookeeper/zk", "github.com/nats-io/nats.go",
		"google.golang.org/grpc", "github.com/envoyproxy/go-control-plane"} {
		if strings.Contains(small, client) {
			t.Errorf("the small command needs %s", client)
		}
		if !strings.Contains(full, client) {
			t.Errorf("the full command lacks %s", client)
		}
	}
}
