package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/quotabench/quotabench/internal/kit/clock"
)

// natsServer starts a server of NATS in this process, and returns a meeting there.
func natsServer(t *testing.T, token string) (meeting, *server.Server) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, Authorization: token,
		NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	at := url.URL{Scheme: "nats", Host: s.Addr().String(), Path: "/test"}
	if token != "" {
		at.User = url.User(token)
	}
	m, err := parseMeeting(at.String())
	if err != nil {
		t.Fatal(err)
	}
	return m, s
}

func planOf(n int) plan {
	return plan{Generators: n, Fingerprint: "f00d", Wait: 20 * time.Second, welcome: welcome{RunID: "run1"},
		Keep: func(int, string) (io.WriteCloser, error) { return nil, errors.New("nothing is kept") }}
}

func helloOf(index, of int) hello {
	return hello{Index: index, Of: of, Fingerprint: "f00d", Place: "here"}
}

var wall = clock.Wall{}.Now

// begin serves a plan, and returns how that ended.
func begin(ctx context.Context, t *testing.T, at meeting, p plan) chan error {
	t.Helper()
	c, err := listen(at, p)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx) }()
	return ended
}

// generatorAt is one that goes through steps until its run ends.
func generatorAt(at meeting, h hello, steps ...string) error {
	m, err := join(context.Background(), at, h, 5*time.Second, wall)
	if err != nil {
		return err
	}
	for _, step := range steps {
		if _, err := m.meet(m.ctx, step); err != nil {
			_ = m.done(err)
			return err
		}
	}
	return m.done(nil)
}

// TestRunTogether: a run has the same start for all, whose clocks are off by seconds, and its files come whole.
func TestRunTogether(t *testing.T) {
	dir := t.TempDir()
	big := bytes.Repeat([]byte("history "), 200_000)
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o700),
		os.WriteFile(filepath.Join(dir, "sub", "h"), big, 0o600),
		os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	p := planOf(3)
	p.Keep = func(index int, name string) (io.WriteCloser, error) {
		return kept(filepath.Join(out, string(rune('0'+index))), name)
	}
	at, _ := natsServer(t, "secret")
	ended := begin(t.Context(), t, at, p)
	var all sync.WaitGroup
	var starts [3]time.Time
	for i := range starts {
		ahead := time.Duration(i) * 2 * time.Second
		all.Go(func() {
			m, err := join(t.Context(), at, helloOf(i+1, 3), time.Minute, func() time.Time { return wall().Add(ahead) })
			if err != nil {
				t.Error(err)
				return
			}
			starts[i], err = m.meet(m.ctx, "start")
			if lead := starts[i].Sub(wall()); err != nil || lead <= 0 || m.RunID != "run1" {
				t.Errorf("%s starts in %v, %v", m.RunID, lead, err)
			}
			if b := m.bound(); time.Duration(b.low()) > ahead || time.Duration(b.high()) < ahead ||
				b.ErrorNS > int64(time.Second) {
				t.Errorf("a clock %v ahead has the bound %+v", ahead, b)
			}
			if err := errors.Join(m.sendFiles(dir, "sub", "empty", "none"), m.done(nil)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := <-ended; err != nil || starts[0].IsZero() || !starts[0].Equal(starts[1]) || !starts[0].Equal(starts[2]) {
		t.Errorf("starts at %v, %v", starts, err)
	}
	for _, index := range []string{"1", "2", "3"} {
		b, err := os.ReadFile(filepath.Join(out, index, "sub", "h"))
		if err != nil || !bytes.Equal(b, big) {
			t.Errorf("the file of generator %s did not come whole: %d bytes, %v", index, len(b), err)
		}
		if b, err := os.ReadFile(filepath.Join(out, index, "empty")); err != nil || len(b) > 0 {
			t.Errorf("an empty file: %q, %v", b, err)
		}
	}
}

// TestFaultsEndTheRun: whatever happens to one generator, all end, and all are told why.
func TestFaultsEndTheRun(t *testing.T) {
	for name, x := range map[string]struct {
		third func(at meeting) // what the third does, or nil
		want  string
	}{
		"killed": {func(at meeting) {
			m, err := join(context.Background(), at, helloOf(3, 3), time.Second, wall)
			if err == nil {
				m.conn.Close() // without a word, as the system does for a process that was killed
			}
		}, "generator 3 of 3 (here) is lost: its process or its connection has ended"},
		"killed while it is asked": {func(at meeting) {
			conn, err := at.connect()
			if err != nil {
				return
			}
			h := helloOf(3, 3)
			h.Inbox = nats.NewInbox()
			_, err = conn.Subscribe(h.Inbox, func(*nats.Msg) { conn.Close() })
			if err == nil {
				_ = ask(context.Background(), conn, at.join(), request{callJoin, 3, h}, nil)
			}
		}, "generator 3 of 3 (here) is lost: its process or its connection has ended"},
		"another plan": {func(at meeting) {
			h := helloOf(3, 3)
			h.Fingerprint = "beef"
			_ = generatorAt(at, h)
		}, "generator 3 (here) has another plan: its fingerprint is beef, and not f00d"},
		"of number 0": {func(at meeting) {
			_ = generatorAt(at, helloOf(0, 3))
		}, "generator 0 of 3 (here) does not fit: the coordinator expects 3"},
		"of another number": {func(at meeting) {
			_ = generatorAt(at, helloOf(4, 4))
		}, "generator 4 of 4 (here) does not fit: the coordinator expects 3"},
		"twice":   {func(at meeting) { _ = generatorAt(at, helloOf(2, 3)) }, "there are two generators 2 of 3"},
		"missing": {nil, "generators 3 of 3 did not join within 2s"},
		"elsewhere": {func(at meeting) {
			_ = generatorAt(at, helloOf(3, 3), "start 2")
		}, "generators are not at the same step"},
		"ended early": {func(at meeting) {
			_ = generatorAt(at, helloOf(3, 3))
		}, "generator 3 (here) has ended, and others wait for it"},
		"that keeps no files": {func(at meeting) {
			sendOne(at)
		}, "the files of generator 3 (here) could not be kept: nothing is kept"},
		"failed": {func(at meeting) {
			m, err := join(context.Background(), at, helloOf(3, 3), time.Second, wall)
			if err == nil {
				_ = m.done(errors.New("no disk"))
			}
		}, "generator 3 (here) failed: no disk"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, _ := natsServer(t, "")
			p := planOf(3)
			p.Wait = 2 * time.Second
			ended := begin(t.Context(), t, at, p)
			var all sync.WaitGroup
			var told [2]error
			for i := range told {
				all.Go(func() { told[i] = generatorAt(at, helloOf(i+1, 3), "start 1", "end") })
			}
			if x.third != nil {
				(clock.Wall{}).Sleep(t.Context(), 300*time.Millisecond) //nolint:errcheck // the test ends it
				x.third(at)
			}
			all.Wait()
			err := <-ended
			stopped, ok := errors.AsType[*stoppedError](err)
			if !ok || !strings.Contains(stopped.Reason, x.want) {
				t.Fatalf("it ended with %v; want %q", err, x.want)
			}
			for i, err := range told {
				if err == nil || err.Error() != stopped.Error() {
					t.Errorf("generator %d was told %v", i+1, err)
				}
			}
		})
	}
}

// sendOne joins as the third, and sends a file.
func sendOne(at meeting) {
	m, err := join(context.Background(), at, helloOf(3, 3), time.Second, wall)
	if err != nil {
		return
	}
	err = m.quick(m.at.join(), request{Call: callFile, Body: part{"h", []byte("history"), true}}, nil)
	_ = m.done(err)
}

// TestInterrupt: generators of a run that is interrupted are told, still meet at its end, and still send their files.
func TestInterrupt(t *testing.T) {
	at, _ := natsServer(t, "")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	out := t.TempDir()
	p := planOf(2)
	p.Keep = func(_ int, name string) (io.WriteCloser, error) { return kept(out, name) }
	ended := begin(ctx, t, at, p)
	var all, met sync.WaitGroup
	met.Add(2)
	for i := range 2 {
		all.Go(func() {
			m, err := join(context.Background(), at, helloOf(i+1, 2), 5*time.Second, wall)
			if err != nil {
				t.Error(err)
				met.Done()
				return
			}
			if _, err := m.meet(m.ctx, "start"); err != nil {
				t.Error(err)
			}
			met.Done()
			met.Wait() // an interruption before ends the meeting of the other
			cancel(errors.New("interrupted"))
			<-m.ctx.Done()
			if why := context.Cause(m.ctx); why.Error() != "interrupted" {
				t.Errorf("it was told %v", why)
			}
			if _, err := m.meet(context.Background(), "end"); err != nil {
				t.Errorf("they do not meet at the end: %v", err)
			}
			name := string(rune('a' + i))
			err = m.quick(m.at.join(), request{Call: callFile, Body: part{name, []byte("history"), true}}, nil)
			if err := errors.Join(err, m.done(nil)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := <-ended; err == nil || err.Error() != "interrupted" {
		t.Errorf("it ended with %v", err)
	}
	if files, _ := os.ReadDir(out); len(files) != 2 {
		t.Errorf("%d files came", len(files))
	}
}

// TestServerGone: generators and coordinator end if the server does.
func TestServerGone(t *testing.T) {
	at, s := natsServer(t, "")
	ended := begin(t.Context(), t, at, planOf(1))
	m, err := join(t.Context(), at, helloOf(1, 1), 5*time.Second, wall)
	if err != nil {
		t.Fatal(err)
	}
	s.Shutdown()
	<-m.ctx.Done()
	if err := context.Cause(m.ctx); !strings.Contains(err.Error(), "the coordinator is lost") {
		t.Error(err)
	}
	_ = m.done(nil) // nobody hears it
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "lost") {
		t.Error(err)
	}
}

// TestWhoMayJoin: who has not the server's token does not join, nor does one without a coordinator, and a name serves
// one run.
func TestWhoMayJoin(t *testing.T) {
	at, _ := natsServer(t, "secret")
	_, err := join(t.Context(), at, helloOf(1, 1), 300*time.Millisecond, wall)
	if err == nil || !strings.Contains(err.Error(), "no coordinator answers at") ||
		strings.Contains(err.Error(), "secret") {
		t.Errorf("without a coordinator: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := begin(ctx, t, at, planOf(1))
	if _, err := listen(at, planOf(1)); err == nil || !strings.Contains(err.Error(), "another run meets at test") {
		t.Errorf("a second coordinator: %v", err)
	}
	stranger := at
	server := *at.server
	server.User = url.User("guess")
	stranger.server = &server
	_, err = join(t.Context(), stranger, helloOf(1, 1), 300*time.Millisecond, wall)
	if err == nil || !strings.Contains(err.Error(), "Authorization") || strings.Contains(err.Error(), "guess") {
		t.Errorf("a stranger: %v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestStrangers: whoever is not let in by the server of NATS neither takes its memory nor ends a run, with a greeting
// that has no end, garbage, or connections that say nothing.
func TestStrangers(t *testing.T) {
	at, _ := natsServer(t, "secret")
	ended := begin(t.Context(), t, at, planOf(1))
	var silent []net.Conn
	greeting := `CONNECT {"verbose":false,"auth_token":"` + strings.Repeat("a", 8<<20)
	publish := "PUB quotabench.test.coordinator 5000000\r\n" + strings.Repeat("a", 5_000_000)
	for _, text := range []string{greeting, publish, strings.Repeat("\x00", 8<<20), ""} {
		conn, err := net.Dial("tcp", at.server.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // the server has closed it
		silent = append(silent, conn)
		sent, _ := io.WriteString(conn, text)
		if sent == len(text) && len(text) > 100 {
			t.Errorf("the server takes %d bytes that begin with %.20q", sent, text)
		}
	}
	if err := generatorAt(at, helloOf(1, 1), "start"); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the run ended with %v", err)
	}
	for _, conn := range silent {
		_, _ = io.Copy(io.Discard, conn) // until the server closes it
	}
}

// TestFloodTakesNoMemory: what a client of the server sends without an end is dropped beyond what generators need.
func TestFloodTakesNoMemory(t *testing.T) {
	at, _ := natsServer(t, "")
	conn, err := at.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	subscription, err := subscribe(conn, "flooded", 3, func(*nats.Msg) { <-t.Context().Done() })
	if err != nil {
		t.Fatal(err)
	}
	sender, err := at.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	message := make([]byte, 512<<10)
	for range 40 {
		if err := errors.Join(sender.Publish("flooded", message), sender.Flush(), conn.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	dropped, err := subscription.Dropped()
	_, bytes, errPending := subscription.Pending()
	if err := errors.Join(err, errPending); err != nil || dropped == 0 || bytes > 4*maxMessage {
		t.Errorf("%d messages were dropped, %d bytes are kept, %v", dropped, bytes, err)
	}
}

// TestMeetingHasAName: a URL that is no meeting is refused without its password.
func TestMeetingHasAName(t *testing.T) {
	for _, text := range []string{"", "nats://h:4222", "nats://h:4222/", "nats://h/a.b", "tcp://h:4222/a",
		"nats://u:geheim@:x/a", "nats://u:geheim@h:99999/a", "nats://u:geheim@h:0/a"} {
		if _, err := parseMeeting(text); err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
