package cli

import (
	"github.com/quotabench/quotabench/internal/kit/exit"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// A run with --metrics answers while it lasts, and at no other time.
func TestRunWithMetrics(t *testing.T) {
	newPlace(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // it only keeps the address busy
	taken.Store(0)
	t.Cleanup(func() { onTake = nil })
	busy := call(t.Context(), tiny("honest", "--metrics", l.Addr().String())...)
	requireUsageError(t, busy)
	if !strings.Contains(busy.stderr, "--metrics: cannot listen at ") {
		t.Errorf("%s", busy.stderr)
	}
	var stdout, stderr lockedBuffer
	said := regexp.MustCompile(`(?m)^metrics: (http://127\.0\.0\.1:\d+/metrics)$`)
	var at, seen string
	onTake = func(n int64) {
		if n != 300 {
			return
		}
		m := said.FindStringSubmatch(stderr.String())
		if m == nil {
			t.Errorf("it does not say where: %s", stderr.String())
			return
		}
		at = m[1]
		r, err := http.Get(at)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = r.Body.Close() }() // it was read
		b, _ := io.ReadAll(r.Body)
		seen = string(b)
	}
	if code := execute(t.Context(), tiny("honest", "--metrics", "127.0.0.1:0"), &stdout, &stderr); code != exit.OK {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	if !strings.Contains(seen, `quotabench_running{strategy="honest",loop="closed"} 1`) {
		t.Errorf("in mid-run it said %q", seen)
	}
	if r, err := http.Get(at); err == nil {
		b, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if strings.Contains(string(b), "quotabench_") { // of another program that was given the port
			t.Error("it is served when the run is over")
		}
	}
	requireUsageError(t, call(t.Context(), tiny("--metrics", "nowhere")...))
}
