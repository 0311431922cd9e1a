package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/stores/server"
	"github.com/quotabench/quotabench/stores"
)

var _ stores.Promoter = (*Store)(nil)

// openReplica starts a replica of a server that was started here: a copy of it that
// streams its log. lag is how much later than there a commit is seen; 0 for no later
// than it arrives.
func openReplica(ctx context.Context, primary *Store, lag time.Duration, o stores.Options) (*Store, error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	copier := filepath.Join(bin, "pg_basebackup")
	if !server.Program(copier) {
		return nil, fmt.Errorf("no %s found: install PostgreSQL's client programs", copier)
	}
	ctx, cancel := context.WithTimeout(ctx, server.OpenTimeout)
	defer cancel()
	p, err := server.Launch("a PostgreSQL replica", 0, func(port int) (*Store, error) {
		s := planned{bin, primary.base.ConnConfig.Password, o}
		return s.serve(ctx, port, func(home *server.Home) error { return primary.copyTo(ctx, copier, home, lag) })
	})
	if err != nil {
		return nil, err
	}
	p.lag = lag
	p.self.About.Detail += ", a replica of " + primary.self.About.Addr
	if lag > 0 {
		p.self.About.Detail += " that is " + lag.String() + " behind"
	}
	return p, nil
}

// copyTo makes a copy of the server that will follow it. The password stands in a
// file of the copy's own directory, for as long as the copy lives.
func (p *Store) copyTo(ctx context.Context, copier string, home *server.Home, lag time.Duration) error {
	c := p.base.ConnConfig
	line := fmt.Sprintf("%s:%d:*:%s:%s\n", c.Host, c.Port, c.User, c.Password)
	file, err := home.Dir.WriteSecret("pgpass", line, home.User)
	if err != nil {
		return err
	}
	cmd := exec.Command(copier, "-D", home.Data, "-h", c.Host, "-p", fmt.Sprint(c.Port), "-U", c.User, "-w",
		"-X", "stream", "-R", "--checkpoint=fast", "--no-sync")
	cmd.Dir, cmd.Env = home.Dir.Path, append(server.Env(), "PGPASSFILE="+file)
	out, err := server.Run(ctx, cmd, home.User)
	if err != nil {
		return fmt.Errorf("pg_basebackup: %w: %s", err, server.LastLines(out, 3))
	}
	if lag == 0 {
		return nil
	}
	conf, err := os.OpenFile(filepath.Join(home.Data, "postgresql.auto.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(conf, "recovery_min_apply_delay = '%dms'\n", lag.Milliseconds())
	return errors.Join(err, conf.Close())
}

// CatchUp waits until the replica shows all that its primary had when it was called.
func (p *Store) CatchUp(ctx context.Context, of stores.Store) error {
	primary, ok := of.(*Store)
	if !ok {
		return fmt.Errorf("wait for a replica: its primary is a %T", of)
	}
	var goal string
	if err := primary.admin.QueryRow(ctx, "SELECT pg_current_wal_lsn()::text").Scan(&goal); err != nil {
		return fmt.Errorf("wait for a replica: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, server.OpenTimeout+p.lag)
	defer cancel()
	for {
		var there bool
		err := p.admin.QueryRow(ctx, "SELECT coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, false)", goal).Scan(&there)
		if err != nil {
			return fmt.Errorf("wait for a replica: %w", err)
		}
		if there {
			return nil
		}
		if err := (clock.Wall{}).Sleep(ctx, 2*time.Millisecond); err != nil {
			return fmt.Errorf("wait for a replica: %w", err)
		}
	}
}

// Promote makes a replica a primary of its own, with what has arrived at that moment.
func (p *Store) Promote(ctx context.Context) error {
	var done bool
	if err := p.admin.QueryRow(ctx, "SELECT pg_promote()").Scan(&done); err != nil || !done {
		return errors.Join(errors.New("promote a replica: it did not become a primary in time"), err)
	}
	p.self.Replica = false
	p.self.About.Detail = strings.Replace(p.self.About.Detail, ", a replica of ", ", promoted from a replica of ", 1)
	return nil
}
