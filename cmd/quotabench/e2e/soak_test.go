//go:build linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
)

// TestSoak runs commands in this process for QUOTABENCH_SOAK, e.g. 10m, on servers
// that others break meanwhile, and looks after each cycle at what the process holds.
// None of it may grow.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("QUOTABENCH_SOAK"))
	if err != nil {
		t.Skip("QUOTABENCH_SOAK says how long it takes, e.g. 10m: make -C tools soak sets it")
	}
	s := &soak{killing: newKilling(t), pool: storetest.PostgresPool(t), codes: map[string]int{}, made: map[string]int{}}
	var held [len(holdings)][]float64
	t.Logf("%5s %6s %10s  %s", "cycle", "after", "holds:", strings.Join(holdings[:], ", "))
	began := clock.Nano()
	for n := 1; n <= leastCycles || clock.Nano()-began < int64(length); n++ {
		s.cycle()
		if t.Failed() {
			return
		}
		h := s.holds()
		for i := range h {
			held[i] = append(held[i], h[i])
		}
		t.Logf("%5d %6s %10s  %v", n, time.Duration(clock.Nano()-began).Round(time.Second), "", h)
	}
	for i, name := range holdings {
		if grows(held[i], slack[i]) {
			t.Errorf("%s grow: %v", name, held[i])
		}
	}
	if l := s.left(); !l.none() {
		t.Errorf("there are left %v: %q %q", l, l.processes, l.files)
	}
	t.Logf("runs: %d, by exit code %v; faults in mid-run: %v", s.runs, s.codes, s.made)
}

// What a process holds, and by what share it may differ between the thirds of a soak.
// Memory comes and goes with the collector.
var (
	holdings = [...]string{"goroutines", "open files", "children", "live heap in MB", "resident memory in MB"}
	slack    = [len(holdings)]float64{3: 0.02, 4: 0.1}
)

// leastCycles are enough for three thirds of three after the warm-up.
const leastCycles = 12

// grows reports whether samples rise from each third to the next, from its median to the
// next one's lower quartile. The first quarter is left out: pools and caches fill then. A
// step that is taken once, and a sample that stands out, are no growth.
func grows(samples []float64, slack float64) bool {
	samples = samples[len(samples)/4:]
	n := len(samples) / 3
	if n == 0 {
		return false
	}
	at := func(part []float64, quantile float64) float64 {
		return slices.Sorted(slices.Values(part))[int(quantile*float64(n))]
	}
	rises := func(a, b []float64) bool { return at(b, 0.25) > at(a, 0.5)*(1+slack) }
	samples = samples[len(samples)-3*n:]
	first := samples[:n]
	second := samples[n : 2*n]
	third := samples[2*n:]
	return rises(first, second) && rises(second, third)
}

func TestGrows(t *testing.T) {
	rng := seed.Rand(1, 0)
	for _, c := range []struct {
		name  string
		at    func(i int) float64
		slack float64
		want  bool
	}{
		{"constant", func(int) float64 { return 20 }, 0, false},
		{"none", func(int) float64 { return 0 }, 0, false},
		{"noise", func(int) float64 { return 80 + 10*rng.Float64() }, 0.02, false},
		{"filling up", func(i int) float64 { return 100 - 50/float64(1+i*i) }, 0.02, false},
		{"one step", func(i int) float64 { return 20 + math.Floor(float64(i)/8) }, 0, false},
		{"a spike", func(i int) float64 { return 20 + 30*float64(max(0, 1-max(i-10, 10-i))) }, 0, false},
		{"one in each cycle", func(i int) float64 { return 20 + float64(i) }, 0, true},
		{"one in two cycles", func(i int) float64 { return float64(i / 2) }, 0, true},
		{"a hundredth in each cycle, in noise", func(i int) float64 {
			return 80 + 0.8*float64(i) + 0.5*rng.Float64()
		}, 0.02, true},
	} {
		var samples []float64
		for i := range 16 {
			samples = append(samples, c.at(i))
		}
		if got := grows(samples, c.slack); got != c.want {
			t.Errorf("%s: grows %t: %.1f", c.name, got, samples)
		}
	}
}

// soak is the servers of a user, and what was run on them.
type soak struct {
	*killing
	pool  *pgxpool.Pool
	runs  int
	codes map[string]int
	made  map[string]int // faults in mid-run, by name
}

// fault is what somebody does to a store in mid-run, and takes back.
type fault struct {
	name, strategy string
	make, mend     func(ctx context.Context) error
}

func (s *soak) faults() []fault {
	command := func(args ...any) func(context.Context) error {
		return func(ctx context.Context) error { return s.server.Admin().Do(ctx, args...).Err() }
	}
	statement := func(sql string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.pool.Exec(ctx, sql)
			return err
		}
	}
	signal := func(sig syscall.Signal) func(context.Context) error {
		return func(context.Context) error { return syscall.Kill(s.server.PID(), sig) }
	}
	return []fault{
		{"emptied", "incr-expire", command("FLUSHALL"), nil},
		{"full", "lua-reserve", command("CONFIG", "SET", "maxmemory", 1), command("CONFIG", "SET", "maxmemory", 0)},
		{"demoted", "incr-expire-atomic", command("REPLICAOF", "127.0.0.1", 1), command("REPLICAOF", "NO", "ONE")},
		{"stopped", "check-then-set", signal(syscall.SIGSTOP), signal(syscall.SIGCONT)},
		{"connections ended", "incr-expire", command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"), nil},
		{"backends terminated", "pg-conditional",
			statement("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type " +
				"= 'client backend' AND backend_start > now() - interval '2 seconds'"), nil},
	}
}

// cycle runs everything once.
func (s *soak) cycle() {
	for _, f := range s.faults() {
		s.broken(f, s.server.Admin(), "--redis", s.redis, "--postgres", s.postgres, "--rounds", "1")
	}
	s.killed()
	s.cancelled()
	s.command(context.Background(), "run", "incr-expire,pg-conditional", "--redis", "process", "--postgres", "process",
		"--rounds", "1", "--duration", "100ms", "--rate", "500")
	s.command(context.Background(), "sim", "incr-expire,three-tier", "--workload", "steady", "--rate", "2000",
		"--duration", "2s", "--trouble", "redis:away@0.3-0.6")
	s.command(context.Background(), "explore", "check-then-set,incr-expire", "--clients", "2")
}

// broken runs a strategy and makes the fault amid its pass. A run that is over before the
// fault is made is repeated with twice the duration.
func (s *soak) broken(f fault, on *goredis.Client, args ...string) {
	const longest = 2 * time.Minute
	for lasts := 400 * time.Millisecond; lasts <= longest; lasts *= 2 {
		if s.breaks(f, on, lasts, args...) || s.t.Failed() {
			s.made[f.name]++
			return
		}
	}
	s.t.Errorf("%q was made in none of the runs, of which the last took %v", f.name, longest)
}

// breaks reports whether the fault was made before the run was over.
func (s *soak) breaks(f fault, on *goredis.Client, lasts time.Duration, args ...string) bool {
	ctx, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		err := s.amid(ctx, strings.HasPrefix(f.strategy, "pg-"), on)
		if err == nil {
			err = f.make(ctx)
		}
		if f.mend != nil {
			_ = clock.Wall{}.Sleep(ctx, lasts/3)
			if e := f.mend(context.Background()); err == nil {
				err = e
			}
		}
		done <- err
	}()
	s.command(context.Background(),
		append([]string{"run", f.strategy, "--duration", lasts.String(), "--workers", "8", "--loop", "closed"}, args...)...)
	over := len(done) == 0 // the run has ended before the fault was made and taken back
	end()
	err := <-done
	if err != nil && !over {
		s.t.Error(err)
	}
	return err == nil
}

// amid waits until a pass has begun.
func (s *soak) amid(ctx context.Context, sql bool, on *goredis.Client) error {
	for begun := false; !begun; {
		if sql {
			if err := s.pool.QueryRow(ctx,
				"SELECT count(*) > 0 FROM pg_tables WHERE tablename = 'quotabench_mark'").Scan(&begun); err != nil {
				return err
			}
		} else {
			begun = len(on.Keys(ctx, "*quotabench-mark*").Val()) > 0
		}
		if err := (clock.Wall{}).Sleep(ctx, 30*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// killed has a Redis end for good in the first of two rounds.
func (s *soak) killed() {
	victim, err := redis.Open(context.Background(), "process", stores.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	o := victim.Admin().Options()
	at := (&url.URL{Scheme: "redis", User: url.UserPassword("", o.Password), Host: o.Addr}).String()
	s.broken(fault{name: "killed", strategy: "incr-expire,pg-conditional", make: func(context.Context) error {
		return syscall.Kill(victim.PID(), syscall.SIGKILL)
	}},
		victim.Admin(), "--redis", at, "--postgres", s.postgres, "--rounds", "2")
	_ = victim.Close() // which says that it has ended
}

// cancelled ends a run at some moment of its first second.
func (s *soak) cancelled() {
	ctx, end := context.WithTimeout(context.Background(), time.Duration(s.rng.Int64N(int64(time.Second))))
	defer end()
	s.command(ctx, "run", "incr-expire,pg-conditional", "--redis", s.redis, "--postgres", s.postgres, "--rounds", "3",
		"--duration", "300ms", "--rate", "1000")
}

// command runs a command line in this process. Whatever becomes of it, it ends.
func (s *soak) command(ctx context.Context, args ...string) {
	out := filepath.Join(s.temp, fmt.Sprintf("soak-%d", s.runs))
	var stdout, stderr bytes.Buffer
	c := cli.Command(&stdout, &stderr)
	c.SetArgs(append(args, "--out", out))
	err := c.ExecuteContext(ctx)
	s.runs++
	if err := os.RemoveAll(out); err != nil {
		s.t.Error(err)
	}
	if err == nil {
		s.codes["ended well"]++
		return
	}
	s.codes["ended with an error"]++
	if strings.Contains(err.Error(), "panic") || strings.Contains(err.Error(), "unknown flag") {
		s.t.Errorf("%v: %v\n%s", args, err, stderr.String())
	}
}

// holds samples what this process holds, at its least within two seconds: what has
// ended takes a moment to go.
func (s *soak) holds() (least [len(holdings)]float64) {
	for i := range least {
		least[i] = math.Inf(1)
	}
	for range 20 {
		debug.FreeOSMemory()
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			s.t.Fatal(err)
		}
		for i, x := range []float64{float64(runtime.NumGoroutine()), float64(len(files) - 1), s.children(), s.heap(),
			s.resident()} {
			least[i] = min(least[i], x)
		}
		_ = clock.Wall{}.Sleep(context.Background(), 100*time.Millisecond)
	}
	return least
}

// children counts the processes that this one has started and not ended, and those
// that nobody has waited for.
func (s *soak) children() (n float64) {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range all {
		b, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(b[bytes.LastIndexByte(b, ')'):]), " ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(os.Getpid()) {
			n++
		}
	}
	return n
}

// heap is what the collector has left, in megabytes, to two digits.
func (s *soak) heap() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return math.Round(float64(m.HeapAlloc)/1e4) / 100
}

// resident is the memory that this process occupies, in megabytes, to one digit. Pages
// of files, such as those of the program itself, are not among it: they come as code is
// used for the first time, and the system takes them back when it likes.
func (s *soak) resident() float64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "RssAnon:")
	var kilobytes float64
	if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
		s.t.Fatal(err)
	}
	return math.Round(kilobytes/100) / 10
}
