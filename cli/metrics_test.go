package cli

import (
	"io"
	"net"
	"net/http"
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
	taken.Store(0)
	t.Cleanup(func() { onTake = nil })
	busy := call(t.Context(), tiny("--strategy", "honest", "--metrics", l.Addr().String())...)
	requireUsageError(t, busy)
	if !strings.Contains(busy.stderr, "--metrics: cannot listen at ") {
		t.Errorf("%s", busy.stderr)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var seen string
	onTake = func(n int64) {
		if n != 300 {
			return
		}
		r, err := http.Get("http://" + addr + "/metrics")
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = r.Body.Close() }() // it was read
		b, _ := io.ReadAll(r.Body)
		seen = string(b)
	}
	o := call(t.Context(), tiny("--strategy", "honest", "--metrics", addr)...)
	if o.code != ExitOK || !strings.Contains(o.stderr, "metrics: http://"+addr+"/metrics\n") {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	if !strings.Contains(seen, `quotabench_running{strategy="honest",loop="closed"} 1`) {
		t.Errorf("in mid-run it said %q", seen)
	}
	if _, err := http.Get("http://" + addr); err == nil {
		t.Error("it is served when the run is over")
	}
	requireUsageError(t, call(t.Context(), tiny("--metrics", "nowhere")...))
}
