package cluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/cli"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/results/codec"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
	_ "github.com/quotabench/quotabench/strategies/all"
)

// commandVariable makes this test binary the program.
const commandVariable = "QUOTABENCH_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandVariable) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	storetest.Main(m)
}

// limit is that of a policy whose windows are so long that all requests are in one.
const (
	limit  = 100
	policy = "100 requests per fixed 87600h"
)

// launched is this test binary as the program.
type launched struct {
	*exec.Cmd
	said  strings.Builder // to be read once it has ended
	ended chan struct{}
}

func launch(t *testing.T, at meeting, args ...string) *launched {
	t.Helper()
	p := &launched{Cmd: exec.Command(os.Args[0], args...), ended: make(chan struct{})}
	p.Env = append(os.Environ(), commandVariable+"=1", meetingVariable+"="+at.server.String())
	p.Stdout = io.Discard
	p.Stderr = &p.said
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.Wait() // its exit code tells
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.ended
	})
	return p
}

// end waits for the process, and returns its exit code and what it said.
func (p *launched) end(t *testing.T) (code int, said string) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		t.Fatalf("%q does not end", p.Args[1:])
	}
	return p.ProcessState.ExitCode(), p.said.String()
}

// site is a Redis of the test's own, and where processes meet.
type site struct {
	url    string
	client *goredis.Client
	at     meeting
	out    string
}

func newSite(t *testing.T) *site {
	t.Helper()
	storetest.Redis(t) // skips if there is none
	r, err := redis.Open(t.Context(), "process", stores.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	at, _ := natsServer(t, "")
	return &site{url: r.URL(), client: r.Admin(), at: at, out: filepath.Join(t.TempDir(), "out")}
}

// share starts a coordinator and three generators, in this order of the processes.
func (s *site) share(t *testing.T, args ...string) (all []*launched) {
	t.Helper()
	args = append([]string{"run", "--redis", s.url, "--generators", "3", "--rounds", "1", "--quiet", "--out", s.out},
		args...)
	for index := range 4 {
		own := args
		if index > 0 {
			own = append(slices.Clone(args), "--generator", fmt.Sprint(index))
		}
		all = append(all, launch(t, s.at, own...))
	}
	return all
}

func (s *site) noKeys(t *testing.T) {
	t.Helper()
	if left := s.client.Keys(t.Context(), "*").Val(); len(left) > 0 {
		t.Errorf("left in Redis: %q", left)
	}
}

// steady is a load that leaks.
var steady = []string{"check-then-set", "--workload", "steady:subjects=4", "--policy", policy}

// TestFiguresAreRedis: what three generators did is in the record as Redis saw it, to the unit, a leak too.
func TestFiguresAreRedis(t *testing.T) {
	s := newSite(t)
	saw := s.watch(t)
	all := s.share(t, append(steady, "--requests", "2003", "--loop", "closed", "--workers", "4")...)
	for index, p := range all {
		if code, said := p.end(t); code != 0 {
			t.Fatalf("process %d ended with %d: %s", index, code, said)
		}
	}
	f, err := codec.Read(filepath.Join(s.out, files.ResultsName))
	if err != nil || len(f.Runs) != 1 {
		t.Fatalf("%d runs, %v", len(f.Runs), err)
	}
	saw.all(t, s.client)
	admitted, trials, leaked := saw.figures()
	r := &f.Runs[0]
	if !r.Audit.Valid || r.Params.Sources != 3 || len(f.Sources) != 3 || r.Issued != 2003 || r.Params.Workers != 12 {
		t.Errorf("%d processes issued %d: %+v", r.Params.Sources, r.Issued, r.Audit)
	}
	if leaked == 0 || admitted == r.Issued || r.Admitted != admitted || r.Leak.Trials != trials || r.Leak.Units != leaked {
		t.Errorf("the record has %d admitted, %+v; Redis saw %d, %d trials and a leak of %d", r.Admitted, r.Leak, admitted,
			trials, leaked)
	}
	if want := fmt.Sprintf("round 1 of 3 generators: leak: certain %d, possible ",
		leaked); !strings.Contains(all[0].said.String(), want) {
		t.Errorf("the coordinator said %q; want %q", all[0].said.String(), want)
	}
	s.noKeys(t)
}

// TestEnds: however a run ends, the coordinator says why, and nothing of the run is left in a Redis of others.
func TestEnds(t *testing.T) {
	for name, x := range map[string]struct {
		do   func(all []*launched)
		code int
		says []string // the coordinator, unless it is gone
		told string   // the first generator
	}{
		"killed": {func(all []*launched) { _ = all[2].Process.Kill() }, exit.Failed,
			[]string{"generator 2 of 3 (process ", "is lost: its process or its connection has ended"}, "generator 2 of 3"},
		"one interrupted": {func(all []*launched) { _ = all[2].Process.Signal(syscall.SIGTERM) }, exit.Failed,
			[]string{"generator 2 (process ", " failed: it was interrupted"}, "generator 2 "},
		"interrupted": {func(all []*launched) {
			_ = all[0].Process.Signal(os.Interrupt)
		}, exit.Interrupted, []string{"interrupted"}, ""},
		"lost coordinator": {func(all []*launched) { _ = all[0].Process.Kill() }, -1, nil, "the coordinator is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			saw := s.watch(t)
			all := s.share(t, append(steady, "--duration", "1m", "--loop", "open", "--rate", "300")...)
			deadline := time.After(time.Minute)
			for admitted := int64(0); admitted < 150; admitted, _, _ = saw.figures() {
				select {
				case <-deadline:
					for _, p := range all {
						_ = p.Process.Kill()
						_, said := p.end(t)
						t.Logf("%q said %q", p.Args[1:], said)
					}
					t.Fatalf("the run does not begin: %d units were admitted", admitted)
				case <-time.After(20 * time.Millisecond):
				}
			}
			at := clock.Nano()
			x.do(all)
			code, said := all[0].end(t)
			if code != x.code {
				t.Errorf("the coordinator ended with %d: %s", code, said)
			}
			for _, want := range x.says {
				if !strings.Contains(said, want) {
					t.Errorf("the coordinator should say %q: %s", want, said)
				}
			}
			if _, said := all[1].end(t); !strings.Contains(said, x.told) {
				t.Errorf("the first generator should say %q: %s", x.told, said)
			}
			for _, p := range all {
				p.end(t)
			}
			if took := time.Duration(clock.Nano() - at); took > 30*time.Second {
				t.Errorf("all ended after %v", took)
			}
			s.noKeys(t)
			if x.code != exit.Failed {
				return
			}
			f, err := codec.Read(filepath.Join(s.out, files.ResultsName))
			if err != nil || len(f.Runs) != 1 || !f.Interrupted || f.Runs[0].Audit.Valid {
				t.Errorf("the record without a generator: %v, %+v", err, f.Runs)
			}
		})
	}
}

// TestUsage: what cannot become a run of several processes is refused before anything starts.
func TestUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(meetingVariable, "")
	for _, x := range []struct {
		args, want string
	}{
		{"run incr-expire --generator 1", "say how many by --generators"},
		{"run incr-expire --generators 2", "give the URL of a server of NATS"},
		{"run --generators 2 --meet nats://h/a", "name the strategies that the processes measure"},
		{"run incr-expire --generators 2 --meet nats://h/a --generator 3", "there are 2 generators, and this is number 3"},
		{"run incr-expire --generators 2 --meet nats://h/a --history h", "several processes have none"},
		{"run incr-expire --generators 2 --meet nats://h/a --param workers=2,8",
			"--param: several processes share the load of one setting"},
		{"run incr-expire --generators 2 --meet nats://h/a --until p99<5ms",
			"--until: several processes share the load of one setting"},
		{"run incr-expire --generators 2 --meet nats://h/a --loop both", "have one loop"},
		{"run incr-expire --generators 2 --meet nats://h/a --budget 1s", "no --budget"},
		{"run incr-expire --generators 2 --meet nats://h/a --trouble redis:away@0.3-0.6", "share no outages"},
		{"run incr-expire --generators 2 --meet nats://h/a --redis embedded", "share a server: give its URL by --redis"},
		{"run incr-expire --generators 2 --generator 1 --meet nats://h:99999/a", "--meet: port 99999: give one from 1 to 65535"},
		{"run incr-expire --generators 2 --generator 1 --meet nats://h:0/a", "--meet: port 0: give one from 1 to 65535"},
		{"run incr-expire --generators -1 --meet nats://h/a", "--generators"},
		{"run exact --generators 2 --meet nats://h/a", "it is one lock in one process"},
	} {
		var said strings.Builder
		if code := cli.Main(strings.Fields(x.args), io.Discard, &said); code != exit.Usage ||
			!strings.Contains(strings.Join(strings.Fields(said.String()), " "), x.want) {
			t.Errorf("%s: exit %d, %s", x.args, code, &said)
		}
	}
}

// TestTokenIsNotPrinted: no process says the token of the server, wherever it comes from, and one with a wrong token ends
// at once.
func TestTokenIsNotPrinted(t *testing.T) {
	t.Chdir(t.TempDir())
	const token = "S3cr3tOk"
	s := newSite(t)
	at, _ := natsServer(t, token)
	wrong, _ := natsServer(t, "another")
	wrong.server.User = url.User(token)
	for _, x := range []struct {
		at   meeting
		args []string
		want string
	}{
		{at, []string{"--generator", "1", "--policy", "nonsense"}, "policy"},
		{at, []string{"--generator", "3"}, "this is number 3"},
		{wrong, []string{"--generator", "1"}, "Authorization Violation"},
		{wrong, nil, "Authorization Violation"},
	} {
		args := append([]string{"run", "incr-expire", "--generators", "2", "--redis", s.url}, x.args...)
		for _, asFlag := range []bool{false, true} {
			t.Setenv(meetingVariable, x.at.server.String())
			if asFlag {
				t.Setenv(meetingVariable, "")
				args = append(args, "--meet", x.at.server.String())
			}
			var said strings.Builder
			code := cli.Main(args, &said, &said)
			if code != exit.Usage || !strings.Contains(said.String(), x.want) || strings.Contains(said.String(), token) {
				t.Errorf("%q: exit %d, %s", x.args, code, &said)
			}
		}
	}
}

// TestPodHasANumber: a pod of an Indexed Job is the generator of its number, and the first one makes the record.
func TestPodHasANumber(t *testing.T) {
	for text, want := range map[string]string{"0": "--meet", "2": "--meet", "3": "this is number 3",
		"x": "give the number of this process"} {
		t.Setenv(indexVariable, text)
		t.Setenv(meetingVariable, "nonsense")
		var said strings.Builder
		code := cli.Main([]string{"run", "incr-expire", "--generators", "2"}, io.Discard, &said)
		if code != exit.Usage || !strings.Contains(said.String(), want) {
			t.Errorf("pod %q: exit %d, %s", text, code, &said)
		}
	}
}

// seen is what Redis says that it does for the subjects of a run, by their keys.
type seen struct {
	mu    sync.Mutex
	keys  map[string]*used
	marks chan struct{}
}

// used is how often a subject was asked for, and how often it was admitted. Each time it is for one unit.
type used struct{ asked, admitted int64 }

var (
	// aside are the subjects of the instrument's own.
	aside = regexp.MustCompile(`:(warm-up|cost-probe)-`)
	// command is what check-then-set does: it reads what a subject has used, and writes one more if there is room.
	command = regexp.MustCompile(`(?i)\] "(get|set)" "([^"]*:used)"(?: "([0-9]+)")?`)
)

// mark is what [seen.all] has Redis say.
const mark = "seen until here"

// watch follows Redis from now on.
func (s *site) watch(t *testing.T) *seen {
	t.Helper()
	o := s.client.Options()
	conn, err := new(net.Dialer).DialContext(t.Context(), o.Network, o.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "AUTH %s\r\nMONITOR\r\n", o.Password)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<24)
	for range 2 {
		if !lines.Scan() || lines.Text() != "+OK" {
			t.Fatalf("%q, %v", lines.Text(), lines.Err())
		}
	}
	w := &seen{keys: map[string]*used{}, marks: make(chan struct{}, 1)}
	go func() {
		for lines.Scan() {
			w.line(lines.Text())
		}
	}()
	return w
}

func (s *seen) line(text string) {
	if strings.Contains(text, mark) {
		s.marks <- struct{}{}
	}
	m := command.FindStringSubmatch(text)
	if m == nil || aside.MatchString(text) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[m[2]] == nil {
		s.keys[m[2]] = new(used)
	}
	switch x := s.keys[m[2]]; {
	case strings.EqualFold(m[1], "get"):
		x.asked++
	case m[3] != "0": // which provisions it
		x.admitted++
	}
}

// figures are those that the record of the run has to have: admitted units, windows of which more than the limit was
// asked, and units that these admitted beyond it.
func (s *seen) figures() (admitted, trials, leaked int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.keys {
		admitted += x.admitted
		leaked += max(0, x.admitted-limit)
		if x.asked > limit {
			trials++
		}
	}
	return admitted, trials, leaked
}

// all waits until what was done before has been seen.
func (s *seen) all(t *testing.T, c *goredis.Client) {
	t.Helper()
	if err := c.Echo(context.Background(), mark).Err(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.marks:
	case <-time.After(patience):
		t.Fatal("Redis says nothing any longer")
	}
}
