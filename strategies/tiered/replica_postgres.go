package tiered

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/quota"
)

// postgresReplica reads a streaming replica.
type postgresReplica struct {
	*postgresSource
	primary *pgxpool.Pool
	clock   quota.Clock
}

// follow waits until the replica has replayed what the primary had written when it
// was asked. It is for opening and setting up: no check waits for it.
func (p *postgresReplica) follow(ctx context.Context) error {
	var written string
	if err := p.primary.QueryRow(ctx, "SELECT pg_current_wal_lsn()::text").Scan(&written); err != nil {
		return fmt.Errorf("ask the primary how far it has written: %w", err)
	}
	for {
		var there *bool
		if err := p.pool.QueryRow(ctx, "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", written).Scan(&there); err != nil {
			return fmt.Errorf("ask the replica how far it has read: %w", err)
		}
		switch {
		case there == nil:
			return fmt.Errorf("the store that misses read replays no other's log: it is no replica")
		case *there:
			return nil
		}
		if err := p.clock.Sleep(ctx, followEvery); err != nil {
			return fmt.Errorf("wait for the replica: %w", err)
		}
	}
}
