package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotabench/quotabench/internal/format"
)

// CreateSchema makes a schema, which must not exist.
func (p *Store) CreateSchema(ctx context.Context, name string) error {
	return p.ddl(ctx, create, name, "CREATE SCHEMA "+pgx.Identifier{name}.Sanitize())
}

// DropSchema removes a schema and all that is in it. It may not exist. Where the
// connection is lost it is tried again, once.
func (p *Store) DropSchema(ctx context.Context, name string) error {
	return p.ddl(ctx, drop, name, dropping(name))
}

func dropping(name string) string {
	return "DROP SCHEMA IF EXISTS " + pgx.Identifier{name}.Sanitize() + " CASCADE"
}

func (p *Store) ddl(ctx context.Context, verb, name, sql string) error {
	_, err := p.admin.Exec(ctx, sql)
	if verb == drop && lost(err) && ctx.Err() == nil {
		// The connection was cut while it lay idle. Others may have been, too.
		p.admin.Reset()
		_, err = p.admin.Exec(ctx, sql)
	}
	return format.Wrapf(err, "%s schema %s", verb, name)
}

// The two things that are done to schemas.
const (
	create = "create"
	drop   = "drop"
)

// lost reports whether an error is of the connection and not of the statement.
func lost(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return strings.HasPrefix(pg.Code, "57P") || strings.HasPrefix(pg.Code, "08") // operator intervention, connection exception
	}
	return err != nil
}
