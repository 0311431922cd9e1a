package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/trouble/network"
	"github.com/quotabench/quotabench/stores"
)

var _ stores.FailsOver = (*Store)(nil)

// What sentinels that are started here need to let a replica take over, and how long a replica may lack its
// master's writes before they make it follow again.
const (
	election   = 5 * time.Second
	mostBehind = 5 * time.Second
)

// CanFailOver implements [stores.FailsOver]: the server and a replica of it were started
// here, by "process:replicas=1" or "process:sentinel=3".
func (r *Store) CanFailOver(behind, left time.Duration) error {
	if len(r.sentinels) == 0 {
		_, err := r.heirs(context.Background())
		return err
	}
	switch {
	case behind > mostBehind:
		return fmt.Errorf("its sentinels make a replica follow again that stops for longer than %v: give failover=%[1]v, "+
			"or less", mostBehind)
	case left < election:
		return fmt.Errorf("its sentinels take up to %v to name a master, and the run goes on for %v: give a longer --duration", election, left)
	}
	return nil
}

// heirs are the replicas that may take the server's place. Sentinels may have named another master than the first
// one, also by themselves: if the machine is so busy that the master does not answer them.
func (r *Store) heirs(ctx context.Context) ([]*Store, error) {
	switch {
	case len(r.sentinels) > 0:
		master, err := r.agreed(ctx)
		return slices.DeleteFunc(slices.Clone(r.watched), func(n *Store) bool { return n == master }), err
	case r.PID() == 0 || len(r.nodes) == 0:
		return nil, errors.New("it has no replica that was started with it: use process:replicas=1 or process:sentinel=3")
	}
	return r.nodes[:1], nil
}

// Replicate implements [stores.FailsOver].
func (r *Store) Replicate(ctx context.Context) error {
	heirs, err := r.heirs(ctx)
	for _, store := range heirs {
		err = errors.Join(err, store.CatchUp(ctx, r))
	}
	return err
}

// Detach implements [stores.FailsOver]. Several replicas end with the same write: one that waited for any of them
// would otherwise lose what another one confirmed.
func (r *Store) Detach(ctx context.Context) (err error) {
	heirs, err := r.heirs(ctx)
	if len(heirs) > 1 {
		err = errors.Join(r.admin.Do(ctx, "CLIENT", "PAUSE", 5000, "WRITE").Err(), r.Replicate(ctx))
		defer func() { err = errors.Join(err, r.admin.Do(ctx, "CLIENT", "UNPAUSE").Err()) }()
	}
	for _, store := range heirs {
		err = errors.Join(err, store.Promote(ctx))
	}
	return err
}

// FailOver implements [stores.FailsOver]. The server is killed. A replica that was not
// detached first reads what had been sent to it. Of several, sentinels choose.
func (r *Store) FailOver(ctx context.Context) error {
	heirs, err := r.heirs(ctx)
	master := r
	if err == nil && len(r.sentinels) > 0 {
		master, err = r.agreed(ctx)
	}
	if err != nil {
		return err
	}
	process, err := os.FindProcess(master.PID())
	if err == nil {
		err = process.Kill()
	}
	err = errors.Join(err, r.lose())
	if err != nil {
		return fmt.Errorf("stop the master: %w", err)
	}
	if len(r.sentinels) > 0 {
		return poll(ctx, "the sentinels to name another master", func() (bool, error) {
			store, err := r.master(ctx)
			return store != master, err
		})
	}
	heir := heirs[0]
	if heir.self.Replica {
		err := poll(ctx, "a replica to miss its master", func() (bool, error) {
			f, err := info(ctx, heir.admin)
			return f["master_link_status"] == "down", err
		})
		if err != nil {
			return err
		}
		if err := heir.Promote(ctx); err != nil {
			return err
		}
	}
	r.moved.Store(&heir.base.Addr)
	return poll(ctx, "the new master", func() (bool, error) { return true, r.admin.Ping(ctx).Err() })
}

// Recover implements [stores.FailsOver]. A new server is started in the place of the one
// that died.
func (r *Store) Recover(ctx context.Context) error {
	heirs, err := r.heirs(ctx)
	switch {
	case err != nil:
		return err
	case len(r.sentinels) > 0:
		return r.regroup(ctx)
	}
	heir := heirs[0]
	if to := r.moved.Load(); to == nil || *to != heir.base.Addr { // the master lives
		if heir.self.Replica && len(r.relays) == 0 {
			return nil
		}
		err := r.lose()
		for _, n := range r.nodes {
			err = errors.Join(err, n.follow(ctx, r))
		}
		return err
	}
	err = errors.Join(r.self.Own.Close(), heir.admin.Close())
	r.self.Own = heir.self.Own
	r.base.Addr = heir.base.Addr
	r.self.About.Addr = heir.self.About.Addr
	r.nodes = r.nodes[1:]
	bin, findErr := find()
	err = errors.Join(err, findErr)
	if err != nil {
		return fmt.Errorf("start a replica: %w", err)
	}
	next, err := openProcess(ctx, bin, false, r.options)
	if err != nil {
		return fmt.Errorf("start a replica: %w", err)
	}
	r.nodes = append(r.nodes, next)
	for _, n := range r.nodes {
		if err := n.follow(ctx, r); err != nil {
			return fmt.Errorf("start a replica: %w", err)
		}
	}
	return nil
}

// redirect leads dials of a single server to where it is now.
func (r *Store) redirect(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if to := r.moved.Load(); to != nil {
			addr = *to
		}
		return dial(ctx, network, addr)
	}
}

// Lag implements [stores.FailsOver]: replicas follow through relays. Sentinels would soon have them follow the master
// itself again.
func (r *Store) Lag(ctx context.Context, behind time.Duration) (bool, error) {
	if len(r.sentinels) > 0 {
		return false, nil
	}
	if err := r.lose(); err != nil {
		return true, err
	}
	link := network.Slow(behind,
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
