package etcd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/full/stores/internal/grpcstore"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/stores"
)

// maxMetrics bounds what is read of a server's metrics, in bytes.
const maxMetrics = 4 << 20

// Stats reads the metrics of the first member, or of all that answer of those that were
// started here, which etcd serves next to its API. Known is false if they are not to be
// had. Commands are calls.
func (e *Store) Stats(ctx context.Context) (sum stores.Stats, err error) {
	asked := e.endpoints
	if !e.Owned() {
		asked = asked[:1]
	}
	for _, endpoint := range asked {
		stats, serr := e.statsOf(ctx, endpoint)
		err = errors.Join(err, serr)
		sum.Known = sum.Known || stats.Known
		sum.Incarnation = format.Join(",", sum.Incarnation, stats.Incarnation)
		sum.Commands = sum.Commands + stats.Commands
		sum.CPU = sum.CPU + stats.CPU
		sum.Memory = sum.Memory + stats.Memory
	}
	if sum.Known {
		return sum, nil
	}
	return sum, err
}

func (e *Store) statsOf(ctx context.Context, endpoint string) (stores.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, grpcstore.DialTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/metrics", nil)
	if err != nil {
		return stores.Stats{}, fmt.Errorf("ask etcd for its metrics: %w", err)
	}
	transport := &http.Transport{TLSClientConfig: e.tls, DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return stores.Stats{}, fmt.Errorf("ask etcd for its metrics: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return stores.Stats{}, nil
	}
	m, err := sums(io.LimitReader(resp.Body, maxMetrics))
	if err != nil {
		return stores.Stats{}, fmt.Errorf("read etcd's metrics: %w", err)
	}
	started, ok := m["process_start_time_seconds"]
	return stores.Stats{
		Known:       ok,
		Incarnation: strconv.FormatFloat(started, 'f', -1, 64),
		Commands:    int64(m["grpc_server_started_total"]),
		CPU:         time.Duration(m["process_cpu_seconds_total"] * float64(time.Second)),
		Memory:      int64(m["process_resident_memory_bytes"]),
	}, nil
}

// sums adds up metrics in Prometheus' text form by name, over all labels.
func sums(r io.Reader) (map[string]float64, error) {
	out := map[string]float64{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		name, value, ok := strings.Cut(line, " ")
		if i := strings.IndexByte(line, '{'); i >= 0 {
			j := strings.LastIndexByte(line, '}')
			if j < i {
				continue
			}
			name = line[:i]
			value = strings.TrimSpace(line[j+1:])
			ok = true
		}
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			out[name] += v
		}
	}
	return out, lines.Err()
}
