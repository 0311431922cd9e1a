package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/audit"
	"github.com/quotabench/quotabench/stores/storetest"
)

// TestAudit: an audit says by its exit code whether it found nothing, agreement, or what is wrong.
func TestAudit(t *testing.T) {
	t.Setenv("QUOTABENCH_REDIS", "")
	t.Setenv("QUOTABENCH_POSTGRES", "")
	requireUsageError(t, call(t.Context(), "audit"))
	requireUsageError(t, call(t.Context(), "audit", "nobody", "--policy", "agent-api"))
	requireUsageError(t, call(t.Context(), "audit", "honest"))
	requireUsageError(t, call(t.Context(), "audit", "honest", "--policy", "agent-api"))
	requireUsageError(t, call(t.Context(), "audit", "all", "--policy", "agent-api"))
	client, prefix := storetest.RedisClient(t)
	args := []string{"audit", "honest", "--policy", "agent-api", "--redis", storetest.Redis(t).URL(), "--key", prefix + "{subject}"}
	requireUsageError(t, call(t.Context(), append(args, "--redis", "process")...))
	if o := call(t.Context(), args...); o.code != ExitFailed || !strings.Contains(o.stderr, "no subject was found") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
	for units, code := range map[int]int{1000: ExitOK, 1001: ExitGate} {
		client.Set(t.Context(), prefix+"one", units, 0)
		o := call(t.Context(), append(args, "--json")...)
		var r audit.Report
		if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || o.code != code || r.Looked != 1 || r.Stores[0].Units != int64(units) {
			t.Errorf("%d units: exit %d, %v: %s%s", units, o.code, err, o.stdout, o.stderr)
		}
	}
	client.Set(t.Context(), prefix+"one", 1000, 0)
	args = append(args, "--postgres", storetest.Postgres(t).URL(), "--wait", "0s")
	requireUsageError(t, call(t.Context(), args...)) // it has no query
	for query, code := range map[string]int{"SELECT 'one', 1000": ExitOK, "SELECT 'one', 990": ExitGate, "SELECT 1": ExitFailed} {
		o := call(t.Context(), append(args, "--query", query)...)
		if o.code != code || code != ExitFailed && !strings.Contains(o.stdout, "1 of about 1 subjects") || code == ExitGate && !strings.Contains(o.stdout, "one: +10") {
			t.Errorf("%s: exit %d: %s%s", query, o.code, o.stdout, o.stderr)
		}
	}
}
