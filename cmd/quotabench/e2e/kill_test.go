//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/seed"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/postgres"
	"github.com/quotabench/quotabench/stores/redis"
)

// A way to end a program: signals, one shortly after the other.
type ending struct {
	name    string
	signals []syscall.Signal
}

var endings = []ending{
	{"KILL", []syscall.Signal{syscall.SIGKILL}},
	{"HUP", []syscall.Signal{syscall.SIGHUP}},
	{"TERM", []syscall.Signal{syscall.SIGTERM}},
	{"INT twice", []syscall.Signal{syscall.SIGINT, syscall.SIGINT}},
}

// killed is a command that is ended at some moment. began and lost look at what it
// printed and wrote.
type killed struct {
	name string
	args func(k *killing) []string
	// lasts is about how long it takes on a machine that does nothing else.
	lasts time.Duration
	// lost is what is missing of what the command had finished; "" for nothing.
	lost func(out, stdout, stderr string) string
}

var toKill = []killed{
	{"run", func(k *killing) []string {
		return []string{"run", "incr-expire,pg-two-phase", "--redis", k.redis, "--postgres", k.postgres, "--store",
			"postgres.2=" + k.postgres2,
			"--store", "redis.2=process", "--rounds", "3", "--duration", "10ms", "--workers", "8", "--rate", "4000", "--verbose"}
	}, 3 * time.Second, lostRounds},
	{"sim", func(k *killing) []string {
		return []string{"sim", "incr-expire,check-then-set", "--redis", k.redis, "--workload", "steady", "--rate", "5",
			"--duration", "8s", "--start", "2100-01-01T00:00:00Z"}
	}, 2 * time.Second, lostSimulations},
	{"explore", func(k *killing) []string {
		return []string{"explore", "check-then-set,pg-check,pg-conditional", "--redis", k.redis, "--postgres", k.postgres,
			"--clients", "3"}
	}, 2 * time.Second, lostSearches},
}

// killing is the servers that are a user's, and where the commands run.
type killing struct {
	t                          *testing.T
	redis, postgres, postgres2 string
	server                     *redis.Store
	sql                        *postgres.Store
	temp                       string
	rng                        *rand.Rand
}

// left is what is there that should not be.
type left struct {
	schemas                int64
	keys, processes, files []string
}

func (l left) String() string {
	return fmt.Sprintf("the keys %q, %d schemas, the processes %q and the files %q", l.keys, l.schemas, l.processes,
		l.files)
}

func (l left) none() bool { return l.schemas == 0 && len(l.keys)+len(l.processes)+len(l.files) == 0 }

// TestKilledAtAnyMoment ends commands on a user's Redis and PostgreSQL at random
// moments. The next start must leave no key, no schema, no process and no file of
// theirs, and what they had finished must have been written. QUOTABENCH_KILLS is the
// number of moments for each command, which the signals share; without it one command
// is ended by each signal, and the test is a long one.
func TestKilledAtAnyMoment(t *testing.T) {
	moments, _ := strconv.Atoi(os.Getenv("QUOTABENCH_KILLS"))
	if moments == 0 {
		testenv.Long(t)
	}
	k := newKilling(t)
	t.Logf("%-8s %-10s %8s %12s %15s %21s %5s", "command", "ended by", "moments", "longest end", "left by itself",
		"after the next start", "lost")
	for i, c := range toKill {
		if moments > 0 { // over all of it, however fast this machine is at present
			c.lasts = k.whole(&c)
			if t.Failed() {
				return
			}
		}
		for j, e := range endings {
			n := (moments + len(endings) - 1 - j) / len(endings)
			if moments == 0 && j%len(toKill) == i {
				n = 1
			}
			if n > 0 {
				k.kill(&c, &e, n)
			}
		}
	}
}

func newKilling(t *testing.T) *killing {
	t.Helper()
	k := &killing{t: t, server: storetest.Redis(t), sql: storetest.Postgres(t), temp: t.TempDir(),
		rng: seed.Rand(uint64(clock.Wall{}.Now().UnixNano()), 0)}
	// Servers that the commands start run as another user if we are root.
	for _, err := range []error{os.Chmod(filepath.Dir(k.temp), 0o755), os.Mkdir(filepath.Join(k.temp, "tmp"), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	o := k.server.Admin().Options()
	k.redis = (&url.URL{Scheme: "redis", User: url.UserPassword("", o.Password), Host: o.Addr}).String()
	pool := storetest.PostgresPool(t)
	c := pool.Config().ConnConfig
	at := url.URL{Scheme: "postgres", User: url.UserPassword(c.User, c.Password), Host: k.sql.Info().Addr,
		Path: c.Database}
	k.postgres = at.String()
	if _, err := pool.Exec(t.Context(), "CREATE DATABASE second"); err != nil {
		t.Fatal(err)
	}
	at.Path = "second"
	k.postgres2 = at.String()
	return k
}

// whole is how long a command takes that is not ended.
func (k *killing) whole(c *killed) time.Duration {
	cmd := k.command(append(c.args(k), "--out", "whole")...)
	began := clock.Nano()
	out, err := cmd.CombinedOutput()
	took := time.Duration(clock.Nano() - began)
	if l := k.left(); !l.none() {
		k.t.Errorf("%s: it left %v\n%s", c.name, l, out)
	}
	if code := cmd.ProcessState.ExitCode(); code == exit.Usage {
		k.t.Errorf("%s: %v\n%s", c.name, err, out)
	}
	if err := os.RemoveAll(filepath.Join(k.temp, "whole")); err != nil {
		k.t.Error(err)
	}
	return took
}

// command is the program with its arguments.
func (k *killing) command(args ...string) *exec.Cmd {
	cmd := exec.Command(program(k.t), args...)
	cmd.Dir = k.temp
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(k.temp, "tmp"))
	return cmd
}

// kill ends one command at n moments.
func (k *killing) kill(c *killed, e *ending, n int) {
	longest := time.Duration(0)
	itself := 0
	after := 0
	lost := 0
	for i := range n {
		dir := fmt.Sprintf("%s-%s-%d", c.name, strings.ReplaceAll(e.name, " ", "-"), i)
		at := time.Duration(k.rng.Int64N(int64(c.lasts)))
		stdout, stderr, took := k.end(c, e, at, dir)
		longest = max(longest, took)
		name := fmt.Sprintf("%s, %s after %v", c.name, e.name, at.Round(time.Millisecond))
		if l := k.left(); !l.none() {
			itself++
			if e.name == "HUP" || e.name == "TERM" {
				k.t.Errorf("%s: it left %v by itself\n%s", name, l, stderr)
			}
		}
		if what := c.lost(filepath.Join(k.temp, dir), stdout, stderr); what != "" {
			lost++
			k.t.Errorf("%s: %s\n%s", name, what, stderr)
		}
		again := k.again()
		if l := k.left(); !l.none() {
			after++
			k.t.Errorf("%s: after the next start there are %v\n%s", name, l, again)
		}
		if err := os.RemoveAll(filepath.Join(k.temp, dir)); err != nil {
			k.t.Error(err)
		}
	}
	k.t.Logf("%-8s %-10s %8d %12v %15d %21d %5d", c.name, e.name, n, longest.Round(10*time.Millisecond), itself, after,
		lost)
}

// stuck is how long an ended command may live before the test gives up.
const stuck = 2 * time.Minute

// end starts the command and ends it, and says how long that took.
func (k *killing) end(c *killed, e *ending, at time.Duration, dir string) (stdout, stderr string, took time.Duration) {
	cmd := k.command(append(c.args(k), "--out", dir)...)
	var out, errs bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		_ = cmd.Wait() // ended by a signal
		close(gone)
	}()
	k.wait(gone, at)
	began := clock.Nano()
	for i, s := range e.signals {
		if i > 0 {
			k.wait(gone, time.Duration(k.rng.Int64N(int64(100*time.Millisecond))))
		}
		_ = cmd.Process.Signal(s) // it may have ended
	}
	select {
	case <-gone:
	case <-time.After(stuck):
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		<-gone
		k.t.Fatalf("%s lives %v after %s\n%s", c.name, stuck, e.name, errs.String())
	}
	return out.String(), errs.String(), time.Duration(clock.Nano() - began)
}

func (k *killing) wait(gone <-chan struct{}, d time.Duration) {
	select {
	case <-gone:
	case <-time.After(d):
	}
}

// again is the next start, of another command.
func (k *killing) again() string {
	cmd := k.command("run", "incr-expire", "--redis", k.redis, "--postgres", k.postgres, "--store", "postgres.2="+
		k.postgres2,
		"--rounds", "1", "--requests", "20", "--workers", "2", "--loop", "closed", "--out", "next")
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() != exit.Failed && cmd.ProcessState.ExitCode() != exit.Gate {
		k.t.Errorf("the next start: %v\n%s", err, out)
	}
	if err := os.RemoveAll(filepath.Join(k.temp, "next")); err != nil {
		k.t.Error(err)
	}
	return string(out)
}

// left looks at what there is.
func (k *killing) left() (l left) {
	ctx := context.Background()
	var err error
	l.keys, err = k.server.Admin().Keys(ctx, "*").Result()
	if err != nil {
		k.t.Fatal(err)
	}
	for _, at := range []string{k.postgres, k.postgres2} {
		s, err := postgres.Open(ctx, at, stores.Options{KeepLeftovers: true})
		if err != nil {
			k.t.Fatal(err)
		}
		held, err := s.Holdings(ctx, true)
		if err != nil {
			k.t.Fatal(err)
		}
		l.schemas += int64(len(held))
		if err := s.Close(); err != nil {
			k.t.Fatal(err)
		}
	}
	tmp := filepath.Join(k.temp, "tmp")
	entries, err := os.ReadDir(tmp)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, e := range entries {
		l.files = append(l.files, e.Name())
	}
	places, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, p := range places {
		if where, err := os.Readlink(p); err == nil && strings.HasPrefix(where, tmp) {
			l.processes = append(l.processes, where)
		}
	}
	return l
}

// running is a line of progress of run: its round, and whose run begins.
var running = regexp.MustCompile(`^\[\d+/\d+\] round (\d+) of \d+: `)

// lostRounds: when a round begins, those before it are written, with two strategies
// each.
func lostRounds(out, _, stderr string) string {
	begun := 0
	for _, line := range lines(stderr) {
		if m := running.FindStringSubmatch(line); m != nil {
			begun, _ = strconv.Atoi(m[1])
		}
	}
	if begun < 2 {
		return ""
	}
	f, err := codec.Read(filepath.Join(out, "results.json"))
	if err != nil {
		return err.Error()
	}
	n := 0
	for i := range f.Runs {
		if f.Runs[i].Repetition < begun {
			n++
		}
	}
	if want := 2 * (begun - 1); n != want {
		return fmt.Sprintf("round %d had begun, and %d runs of those before are written instead of %d", begun, n, want)
	}
	return ""
}

// lostSimulations: a strategy that says that it has ended is written.
func lostSimulations(out, _, stderr string) string {
	ended := strings.Count(stderr, " of virtual time, ")
	if ended == 0 {
		return ""
	}
	f, err := codec.Read(filepath.Join(out, "results.json"))
	if err != nil {
		return err.Error()
	}
	if len(f.Runs) < ended {
		return fmt.Sprintf("%d strategies had ended, %d are written", ended, len(f.Runs))
	}
	return ""
}

// lostSearches: what a search has shown is written.
func lostSearches(out, stdout, _ string) string {
	shown := 0
	for _, name := range []string{"check-then-set", "pg-check", "pg-conditional"} {
		for _, line := range lines(stdout) {
			if strings.HasPrefix(line, name+": ") || strings.HasPrefix(line, name+" ") {
				shown++
				break
			}
		}
	}
	if shown == 0 {
		return ""
	}
	x, err := codec.ReadExploration(filepath.Join(out, "exploration.json"))
	if err != nil {
		return err.Error()
	}
	if len(x.Searches) < shown {
		return fmt.Sprintf("%d searches were shown, %d are written", shown, len(x.Searches))
	}
	return ""
}

func lines(text string) (out []string) {
	s := bufio.NewScanner(strings.NewReader(text))
	for s.Scan() {
		out = append(out, s.Text())
	}
	return out
}
