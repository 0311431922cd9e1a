package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/network"
	"github.com/quotabench/quotabench/internal/seed"
)

// Lag implements [stores.FailsOver]: replicas follow through relays. Sentinels would soon have them follow the master
// itself again.
func (r *Store) Lag(ctx context.Context, behind time.Duration) (bool, error) {
	if len(r.sentinels) > 0 {
		return false, nil
	}
	if err := r.lose(); err != nil {
		return true, err
	}
	link := network.NewLink([]network.Condition{{To: 1, Latency: behind}}, func(network.Condition) bool { return true }, 0,
		func() int64 { return clock.Nano() + 1 }, seed.Rand(0, seed.Conditions))
	link.Begin()
	for _, n := range r.nodes {
		relay, err := network.NewRelay(r.base.Addr, link)
		if err == nil {
			r.relays = append(r.relays, relay)
			err = n.followAt(ctx, r, relay.Addr().String())
		}
		if err != nil {
			return true, fmt.Errorf("delay a replica: %w", err)
		}
	}
	return true, nil
}

// lose ends the relays, with what is on its way to replicas.
func (r *Store) lose() (err error) {
	for _, relay := range r.relays {
		err = errors.Join(err, relay.Close())
	}
	r.relays = nil
	return err
}
