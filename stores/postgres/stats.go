package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/quotabench/quotabench/internal/stores/server"
	"github.com/quotabench/quotabench/stores"
)

// Stats reads the server's statistics. The processor time is that of all its processes; it is 0 on servers that are no
// children of ours, and outside Linux.
func (p *Store) Stats(ctx context.Context) (stores.Stats, error) {
	var start time.Time
	if err := p.admin.QueryRow(ctx, "SELECT pg_postmaster_start_time()").Scan(&start); err != nil {
		return stores.Stats{}, fmt.Errorf("ask postgresql for its state: %w", err)
	}
	stats := stores.Stats{Known: true, Incarnation: start.UTC().Format(time.RFC3339Nano)}
	if pid := p.PID(); pid != 0 {
		stats.CPU, _ = server.CPUOfTree(pid)
	}
	return stats, nil
}
