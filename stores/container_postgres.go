package stores

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
)

func openPostgresContainer(ctx context.Context, e *engine, o Options) (*Postgres, error) {
	password := newPassword()
	// Shown by the server, so that it is known among others; it is no secret.
	o.Settings = maps.Clone(o.Settings)
	if o.Settings == nil {
		o.Settings = map[string]string{}
	}
	o.Settings["cluster_name"] = ownUser + " " + rand.Text()
	const pwfile = "/etc/quotabench.password"
	spec := boxSpec{
		image: cmp.Or(o.Image, DefaultPostgresImage),
		port:  5432,
		files: map[string]string{pwfile: password},
		env: map[string]string{
			"POSTGRES_USER": ownUser, "POSTGRES_DB": ownDatabase, "POSTGRES_PASSWORD_FILE": pwfile,
			// By default the image trusts whoever comes from 127.0.0.1.
			"POSTGRES_INITDB_ARGS": "--auth-host=scram-sha-256 --encoding=UTF8 --locale=C --no-sync",
		},
		command: func(listen string, port int) []string {
			return append([]string{"postgres"}, postgresSettings(listen, port, o)...)
		},
	}
	var p *Postgres
	err := e.runBox(ctx, o, spec, func(b *box) error {
		p = &Postgres{own: b, info: Info{Kind: KindContainer, Detail: e.detail(spec.image)}}
		if err := p.aim(b.host, b.port, password); err != nil {
			return err
		}
		return p.await(ctx, "cluster_name", o.Settings["cluster_name"])
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}
