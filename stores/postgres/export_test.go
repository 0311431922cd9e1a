package postgres

import (
	"context"

	"github.com/quotabench/quotabench/internal/host/server"
)

// Password of a server started here.
func (p *Store) Password() string { return p.base.ConnConfig.Password }

// Arguments of a server that is a child of ours; they are everybody's to read,
// if only until a server writes over them.
func (p *Store) Arguments() []string {
	if c, ok := p.self.Own.(*server.Child); ok {
		return c.Args()
	}
	return nil
}

// Renew renews the leases at once.
func (p *Store) Renew(ctx context.Context) { p.self.Renew(ctx) }
