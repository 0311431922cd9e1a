package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/quotabench/quotabench/stores"
)

var _ stores.FailsOver = (*Store)(nil)

// CanFailOver implements [stores.FailsOver]: the server and a replica of it were started
// here, by "process:replicas=1".
func (r *Store) CanFailOver() error {
	if r.PID() == 0 || len(r.nodes) == 0 {
		return errors.New("it has no replica that was started with it: use process:replicas=1")
	}
	return nil
}

// heir is the replica that takes the server's place.
func (r *Store) heir() *Store { return r.nodes[0] }

// Replicate implements [stores.FailsOver].
func (r *Store) Replicate(ctx context.Context) error {
	if err := r.CanFailOver(); err != nil {
		return err
	}
	return r.heir().CatchUp(ctx, r)
}

// Detach implements [stores.FailsOver].
func (r *Store) Detach(ctx context.Context) error {
	if err := r.CanFailOver(); err != nil {
		return err
	}
	return r.heir().Promote(ctx)
}

// FailOver implements [stores.FailsOver]. The server is killed. A replica that was not
// detached first reads what had been sent to it.
func (r *Store) FailOver(ctx context.Context) error {
	if err := r.CanFailOver(); err != nil {
		return err
	}
	master, err := os.FindProcess(r.PID())
	if err == nil {
		err = master.Kill()
	}
	if err != nil {
		return fmt.Errorf("stop the master: %w", err)
	}
	heir := r.heir()
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
	if err := r.CanFailOver(); err != nil {
		return err
	}
	heir := r.heir()
	if to := r.moved.Load(); to == nil || *to != heir.base.Addr { // the master lives
		if heir.self.Replica {
			return nil
		}
		return heir.follow(ctx, r)
	}
	err := errors.Join(r.self.Own.Close(), heir.admin.Close())
	r.self.Own, r.base.Addr, r.self.About.Addr = heir.self.Own, heir.base.Addr, heir.self.About.Addr
	r.nodes = r.nodes[1:]
	bin, findErr := find()
	if err = errors.Join(err, findErr); err != nil {
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
