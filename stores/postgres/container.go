package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"

	"github.com/quotabench/quotabench/internal/stores/server"
	"github.com/quotabench/quotabench/stores"
)

func openContainer(ctx context.Context, e server.Engine, o stores.Options) (*Store, error) {
	password := server.NewPassword()
	// Shown by the server, so that it is known among others; it is no secret.
	o.Settings = maps.Clone(o.Settings)
	if o.Settings == nil {
		o.Settings = map[string]string{}
	}
	o.Settings["cluster_name"] = ownUser + " " + rand.Text()
	const pwfile = "/etc/quotabench.password"
	spec := server.ContainerSpec{
		Image: cmp.Or(o.Image, defaultImage),
		Port:  5432,
		Dir:   o.Dir, NoPull: o.NoPull,
		Files: map[string]string{pwfile: password},
		Env: map[string]string{
			"POSTGRES_USER": ownUser, "POSTGRES_DB": ownDatabase, "POSTGRES_PASSWORD_FILE": pwfile,
			// By default the image trusts every client on 127.0.0.1.
			"POSTGRES_INITDB_ARGS": "--auth-host=scram-sha-256 --encoding=UTF8 --locale=C --no-sync",
		},
		Command: func(listen string, port int) []string {
			return append([]string{"postgres"}, arguments(listen, port, o)...)
		},
	}
	var p *Store
	err := e.Run(ctx, spec, func(b server.Container) error {
		p = newStore(b, stores.Info{Kind: stores.KindContainer, Detail: e.Detail(spec.Image)})
		if err := p.aim(b.Host(), b.Port(), password); err != nil {
			return err
		}
		return p.await(ctx, "cluster_name", o.Settings["cluster_name"])
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}
