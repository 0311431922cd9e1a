package cli

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/coordinate"
	"github.com/quotabench/quotabench/results/codec"
)

// serveGenerator makes this test binary the program if it was started as a generator.
func serveGenerator() {
	if os.Getenv(coordinate.Variable) != "" && len(os.Args) > 1 && os.Args[1] == "run" {
		os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr))
	}
}

// TestGenerators: processes that each count for themselves leak what all but one admit, which each
// alone does not show; one alone leaks nothing; and why one fails is what the run says.
func TestGenerators(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts five processes, three of them for half a second of load")
	}
	for _, x := range []struct {
		n, strategy  string
		fails, leaks bool
		says         string
	}{
		{"2", "honest", false, true, "round 1 of 2 generators: leak: certain "},
		{"1", "honest", false, false, "round 1 of 1 generators: leak: certain 0, possible 0"},
		{"2", "broken", true, false, "out of order"},
	} {
		dir := filepath.Join(t.TempDir(), "out")
		o := call(t.Context(), "run", x.strategy, "--generators", x.n, "--instances", "1", "--limit", "10", "--rate", "500", "--duration", "500ms", "--rounds", "1",
			"--redis", "embedded", "--postgres", "embedded", "--out", dir)
		if (o.code == ExitFailed) != x.fails || !strings.Contains(o.stderr, x.says) {
			t.Errorf("%s from %s: exit %d\n%s", x.strategy, x.n, o.code, o.stderr)
			continue
		}
		f, err := codec.Read(filepath.Join(dir, "results.json"))
		if x.fails {
			continue // what is there is no verdict
		}
		if err != nil || len(f.Runs) != 1 {
			t.Errorf("%s from %s: %v", x.strategy, x.n, err)
			continue
		}
		if leak := f.Runs[0].Leak; leak.Trials == 0 || (leak.Units > 0) != x.leaks {
			t.Errorf("%s from %s: %+v", x.strategy, x.n, leak)
		}
		if _, err := os.Stat(filepath.Join(dir, "generator-"+x.n, coordinate.LogName)); err != nil {
			t.Error(err)
		}
	}
}

// TestWhoMayJoinLater: a Kubernetes Job tries a generator again that no coordinator answers, and none that is refused.
func TestWhoMayJoinLater(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for c, err := mute.Accept(); err == nil; c, err = mute.Accept() {
			_ = c.Close()
		}
	}()
	l, join, err := coordinate.ListenTCP(t.Context(), "127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	var other sync.WaitGroup
	other.Go(func() {
		_ = coordinate.NewCoordinator(coordinate.Plan{Generators: 1, Fingerprint: "another", Wait: time.Minute}).Run(t.Context(), l)
	})
	for at, want := range map[string]int{"tcp://" + mute.Addr().String(): ExitUsage, join: ExitFailed} {
		o := call(t.Context(), "run", "honest", "--generator", "1/1", "--coordinator", at, "--redis", "embedded", "--postgres", "embedded", "--out", t.TempDir())
		if o.code != want {
			t.Errorf("exit %d, should be %d\n%s", o.code, want, o.stderr)
		}
	}
	_ = mute.Close()
	other.Wait()
}

// TestGivenTokenIsNotShown: a coordinator says how generators join, but not with a token that its user has chosen: logs of pods have it.
func TestGivenTokenIsNotShown(t *testing.T) {
	for at, shown := range map[string]bool{"tcp://127.0.0.1:0": true, "tcp://geheim@127.0.0.1:0": false} {
		o := call(t.Context(), "coordinate", "--generators", "1", "--at", at, "--wait", "1ms", "run", "honest", "--redis", "embedded", "--postgres", "embedded",
			"--out", filepath.Join(t.TempDir(), "out"))
		if o.code != ExitFailed || strings.Contains(o.stderr, "joins by") != shown || strings.Contains(o.stderr, "geheim") || !strings.Contains(o.stderr, "did not join") {
			t.Errorf("%s: exit %d\n%s", at, o.code, o.stderr)
		}
	}
}

// TestCoordinateUsage: what cannot become a run of generators is refused before anything starts.
func TestCoordinateUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, x := range []struct{ args, want string }{
		{"coordinate --generators 2 sim", `generators share a run, not "sim"`},
		{"coordinate run honest", "--generators N"},
		{"coordinate --generators 2 run honest --generators 3", "--generators N"},
		{"run honest --generator 1/2", "the URL of their coordinator"},
		{"run honest --generators 2 --generator 1/2", "one of the two"},
		{"run honest --generators 2 --budget 1s", "no --budget"},
		{"coordinate --generators 1 --at nonsense://x run honest --redis embedded --postgres embedded", "not by nonsense"},
	} {
		if o := call(t.Context(), strings.Fields(x.args)...); o.code != ExitUsage || !strings.Contains(o.stderr, x.want) {
			t.Errorf("%s: exit %d, %s", x.args, o.code, o.stderr)
		}
	}
}
