package stores

import (
	"context"
	"fmt"
	"time"
)

// PostgresStats is what a server says about itself. Counts are those of the
// database in use, for all its clients, and include what the harness did.
// Sessions report what they did at most once a second.
type PostgresStats struct {
	// StartTime changes with every start of the server.
	StartTime time.Time
	// Commits and Rollbacks of transactions; a statement on its own is one.
	Commits, Rollbacks int64
	// Deadlocks that the server resolved.
	Deadlocks int64
	// CPU time of all its processes; 0 where it is not known, which is so on
	// servers that are no children of ours, and outside Linux.
	CPU time.Duration
}

// Stats reads the server's statistics. ok is false where there is no server.
func (p *Postgres) Stats(ctx context.Context) (stats PostgresStats, ok bool, err error) {
	if !p.Available() {
		return PostgresStats{}, false, nil
	}
	err = p.admin.QueryRow(ctx, `
		SELECT pg_postmaster_start_time(), xact_commit, xact_rollback, deadlocks
		FROM pg_stat_database WHERE datname = current_database()`).
		Scan(&stats.StartTime, &stats.Commits, &stats.Rollbacks, &stats.Deadlocks)
	if err != nil {
		return PostgresStats{}, false, fmt.Errorf("ask postgresql for its state: %w", err)
	}
	if pid := p.PID(); pid != 0 {
		stats.CPU, _ = cpuOfTree(pid)
	}
	return stats, true, nil
}
