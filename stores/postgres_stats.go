package stores

import (
	"context"
	"fmt"
	"time"
)

// Stats reads the server's statistics. Known is false where there is no server.
// The processor time is that of all its processes; it is 0 on servers that are no
// children of ours, and outside Linux.
func (p *Postgres) Stats(ctx context.Context) (Stats, error) {
	if !p.Available() {
		return Stats{}, nil
	}
	var start time.Time
	if err := p.admin.QueryRow(ctx, "SELECT pg_postmaster_start_time()").Scan(&start); err != nil {
		return Stats{}, fmt.Errorf("ask postgresql for its state: %w", err)
	}
	stats := Stats{Known: true, Incarnation: start.UTC().Format(time.RFC3339Nano)}
	if pid := p.PID(); pid != 0 {
		stats.CPU, _ = cpuOfTree(pid)
	}
	return stats, nil
}
