package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quotabench/quotabench/stores"
)

// nameReplica, behind "postgres.", is a replica of the main store.
const nameReplica = "replica"

// openFurther opens a further PostgreSQL: by its spec, or as the run's main one was
// opened. A replica that is started takes how far it is behind, e.g.
// "process:lag=500ms".
func openFurther(ctx context.Context, f stores.Further) (stores.Store, error) {
	spec := cmp.Or(f.Spec, f.MainSpec)
	word, list, shaped := strings.Cut(spec, ":")
	bare := word == "auto" || word == "process" || word == "container"
	switch {
	case f.Role() == nameReplica && bare:
		lag, err := lagIn(word, list, shaped && f.Spec != "")
		if err != nil {
			return nil, err
		}
		return replicaOf(ctx, f.Main, lag, f.Options)
	case f.Spec != "":
		return stores.Opener(Open)(ctx, f.Spec, f.Options)
	case f.Role() == nameReplica:
		return replicaOf(ctx, f.Main, 0, f.Options)
	case !bare && word != "embedded":
		return nil, fmt.Errorf("what --postgres leads to is not started here, so no further one is: give it by --store %s=SPEC", f.Name)
	}
	return stores.Opener(Open)(ctx, word, f.Options)
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

func replicaOf(ctx context.Context, main stores.Store, lag time.Duration, o stores.Options) (stores.Store, error) {
	primary, ok := main.(*Store)
	switch {
	case !ok:
		return nil, errors.New("there is no postgres that it could be a replica of")
	case primary.self.Own == nil || primary.self.About.Kind != stores.KindProcess:
		return nil, errors.New("a replica is started for a PostgreSQL that was started as a process: use --postgres process, " +
			"or give the address of yours by --store postgres.replica=postgres://host")
	}
	p, err := openReplica(ctx, primary, lag, o)
	if err != nil {
		return nil, err
	}
	return p, nil
}
