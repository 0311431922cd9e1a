package nats_test

import (
	"context"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/quotabench/quotabench/full/internal/keepcheck"
	"github.com/quotabench/quotabench/full/stores/nats"
	"github.com/quotabench/quotabench/stores"
)

func TestKeeper(t *testing.T) {
	s := open(t)
	t.Setenv("NATS_PASSWORD", s.Password())
	n, err := nats.Open(t.Context(), "nats://quotabench@"+s.Info().Addr, stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Close() }()
	keepcheck.Keeps(t, n, keepcheck.Kept{
		Board: n.Board(), Things: 1,
		Put: func(ctx context.Context, scope stores.Scope) error {
			_, err := n.JetStream().CreateStream(ctx, jetstream.StreamConfig{Name: scope.Schema()})
			return err
		},
		There: func(ctx context.Context, scope stores.Scope) bool {
			_, err := n.JetStream().Stream(ctx, scope.Schema())
			return err == nil
		},
		Vouch: func(ctx context.Context, scope stores.Scope, _ string, runs bool) error {
			if runs {
				return nil // who enters has a lease
			}
			e, err := n.JetStream().Stream(ctx, "quotabench-holding-"+string(scope))
			if err == nil {
				err = e.Purge(ctx)
			}
			return err
		},
	})
	for name := range n.JetStream().StreamNames(t.Context()).Name() {
		if strings.HasPrefix(name, "quotabench") {
			t.Errorf("left: %s", name)
		}
	}
}
