package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/programs"
	"github.com/quotabench/quotabench/stores"
)

var _ stores.Follower = (*Store)(nil)

// openReplica starts a replica of a server that was started here: a copy of it that
// streams its log. lag is how much later than there a commit is seen; 0 for no later
// than it arrives.
func openReplica(ctx context.Context, primary *Store, lag time.Duration, options stores.Options) (*Store, error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	copier := filepath.Join(bin, "pg_basebackup")
	if !programs.IsFile(copier) {
		return nil, program().Missing(copier)
	}
	ctx, cancel := context.WithTimeout(ctx, server.OpenTimeout)
	defer cancel()
	store, err := server.Launch("a PostgreSQL replica", 0, func(port int) (*Store, error) {
		s := planned{bin, primary.base.ConnConfig.Password, options}
		return s.serve(ctx, port, func(home *server.Home) error { return primary.copyTo(ctx, copier, home, lag) })
	})
	if err != nil {
		return nil, err
	}
	store.lag = lag
	store.self.About.Detail += ", a replica of " + primary.self.About.Addr
	if lag > 0 {
		store.self.About.Detail += " that is " + lag.String() + " behind"
	}
	return store, nil
}

// copyTo makes a copy of the server that will follow it. The password stands in a
// file of the copy's own directory, for as long as the copy lives.
func (p *Store) copyTo(ctx context.Context, copier string, home *server.Home, lag time.Duration) error {
	config := p.base.ConnConfig
	line := fmt.Sprintf("%s:%d:*:%s:%s\n", config.Host, config.Port, config.User, config.Password)
	file, err := home.Dir.WriteSecret("pgpass", line, home.User)
	if err != nil {
		return err
	}
	cmd := exec.Command(copier, "-D", home.Data, "-h", config.Host, "-p", fmt.Sprint(config.Port), "-U", config.User, "-w",
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
func (p *Store) CatchUp(ctx context.Context, store stores.Store) error {
	primary, ok := store.(*Store)
	if !ok {
		return fmt.Errorf("wait for a replica: its primary is a %T", store)
	}
	var goal string
	if err := primary.admin.QueryRow(ctx, "SELECT pg_current_wal_lsn()::text").Scan(&goal); err != nil {
		return fmt.Errorf("wait for a replica: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, server.OpenTimeout+p.lag)
	defer cancel()
	for {
		var there bool
		err := p.admin.QueryRow(ctx, "SELECT coalesce(pg_last_wal_replay_lsn() >= $1::text::pg_lsn, false)",
			goal).Scan(&there)
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

// nameReplica, behind "postgres.", is a replica of the main store.
const nameReplica = "replica"

// openFurther opens a further PostgreSQL: by its spec, or as the run's main one was
// opened. A replica that is started takes how far it is behind, e.g.
// "process:lag=500ms".
func openFurther(ctx context.Context, further stores.Further) (stores.Store, error) {
	spec := cmp.Or(further.Spec, further.MainSpec)
	word, list, shaped := strings.Cut(spec, ":")
	bare := word == "auto" || word == "process" || word == "container"
	if further.Spec == "" && strings.HasPrefix(spec, containerImage) {
		word = spec // the same image
	}
	switch {
	case further.Role() == nameReplica && bare:
		lag, err := lagIn(word, list, shaped && further.Spec != "")
		if err != nil {
			return nil, err
		}
		return replicaOf(ctx, further.Main, lag, further.Options)
	case further.Spec != "":
		return stores.Opener(Open)(ctx, further.Spec, further.Options)
	case further.Role() == nameReplica:
		return replicaOf(ctx, further.Main, 0, further.Options)
	case !bare && word != "embedded":
		return nil, fmt.Errorf("what --postgres leads to is not started here, so no further one is: give it by --store "+
			"%s=SPEC", further.Name)
	}
	return stores.Opener(Open)(ctx, word, further.Options)
}

// lagIn reads what stands behind the colon of a replica's spec.
func lagIn(word, list string, any bool) (time.Duration, error) {
	if !any {
		return 0, nil
	}
	text, ok := strings.CutPrefix(list, "lag=")
	lag, err := time.ParseDuration(text)
	if !ok || err != nil || lag < time.Millisecond || lag > time.Hour {
		return 0, fmt.Errorf("%s:%s: behind the colon of a replica stands lag=TIME, from 1ms to 1h", word, list)
	}
	return lag, nil
}

func replicaOf(ctx context.Context, main stores.Store, lag time.Duration,
	options stores.Options) (stores.Store, error) {
	primary, ok := main.(*Store)
	switch {
	case !ok:
		return nil, errors.New("there is no postgres that it could be a replica of")
	case primary.self.Own == nil || primary.self.About.Kind != stores.KindProcess:
		return nil, errors.New("a replica is started for a PostgreSQL that was started as a process: use --postgres process, " +
			"or give the address of yours by --store postgres.replica=postgres://host")
	}
	store, err := openReplica(ctx, primary, lag, options)
	if err != nil {
		return nil, err
	}
	return store, nil
}
