package coordinate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
	"github.com/quotabench/quotabench/internal/coordinate"
	"github.com/quotabench/quotabench/internal/network"
	"github.com/quotabench/quotabench/internal/seed"
	_ "github.com/quotabench/quotabench/internal/testenv"
)

// pipes is a listener whose connections are pipes in memory.
type pipes struct {
	conns chan net.Conn
	over  chan struct{}
	once  sync.Once
	mu    sync.Mutex
	open  []net.Conn // the coordinator's ends
	dead  atomic.Bool
}

// mortal is the coordinator's end of a connection. Nothing is written by it once the coordinator is dead.
type mortal struct {
	net.Conn
	dead *atomic.Bool
}

func (m mortal) Write(b []byte) (int, error) {
	if m.dead.Load() {
		return 0, net.ErrClosed
	}
	return m.Conn.Write(b)
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), over: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.over) }); return nil }
func (p *pipes) Addr() net.Addr { return nil }

// dial returns the generator's end of a connection that has begun.
func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.mu.Lock()
	p.open = append(p.open, theirs)
	p.mu.Unlock()
	p.conns <- mortal{theirs, &p.dead}
	return ours
}

// die closes all connections without a word, as the system does for a process that was killed.
func (p *pipes) die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead.Store(true)
	for _, c := range p.open {
		_ = c.Close()
	}
}

var plan = coordinate.Plan{Generators: 3, Fingerprint: "f00d", Token: "secret", Wait: 20 * time.Second,
	Welcome: coordinate.Welcome{RunID: "run1"}}

func hello(index int) coordinate.Hello {
	return coordinate.Hello{Index: index, Of: 3, Fingerprint: "f00d", Token: "secret", Place: "here"}
}

// generator is one that goes through steps until its run ends, at moments of its clock.
func generator(conn net.Conn, h coordinate.Hello, now func() time.Time, steps ...string) error {
	m, err := coordinate.Attend(context.Background(), conn, h, now)
	if err != nil {
		return err
	}
	for _, step := range steps {
		if _, err := m.Meet(m.Context(), step); err != nil {
			_ = m.Done(err)
			return err
		}
		if err := (clock.Wall{}).Sleep(m.Context(), 5*time.Second); err != nil { // the measured pass
			_ = m.Done(nil)
			return context.Cause(m.Context())
		}
	}
	return m.Done(nil)
}

// coordinated runs a coordinator with what f does to it, in virtual time. It returns after how long
// the coordinator ended, and how.
func coordinated(t *testing.T, p coordinate.Plan, f func(l *pipes, interrupt func())) (took time.Duration, err error) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newPipes(), coordinate.NewCoordinator(p)
		begun := clock.Nano()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() { f(l, cancel) })
		err = c.Run(ctx, l)
		took = time.Duration(clock.Nano() - begun)
		all.Wait()
	})
	return took, err
}

var wall = clock.Wall{}.Now

// TestGeneratorsBeginTogether: clocks that are off by seconds do not keep generators from
// beginning each step at one instant, and their bounds hold the truth.
func TestGeneratorsBeginTogether(t *testing.T) {
	var mu sync.Mutex
	instants := map[string][]time.Time{}
	_, err := coordinated(t, plan, func(l *pipes, _ func()) {
		var all sync.WaitGroup
		for i := range 3 {
			ahead := time.Duration(i) * 2 * time.Second
			all.Go(func() {
				m, err := coordinate.Attend(context.Background(), l.dial(), hello(i+1), func() time.Time { return wall().Add(ahead) })
				if err != nil {
					t.Error(err)
					return
				}
				for _, step := range []string{"start 1", "start 2", "end"} {
					time.Sleep(time.Duration(i) * time.Second)
					at, err := m.Meet(m.Context(), step)
					if lead := at.Sub(wall()); err != nil || (lead < 50*time.Millisecond) != (step == "end") {
						t.Errorf("%s of %d begins in %v, %v", step, i+1, lead, err)
					}
					mu.Lock()
					instants[step] = append(instants[step], at)
					mu.Unlock()
				}
				if b := m.Bound(); time.Duration(b.OffsetNS-b.ErrorNS) > ahead || time.Duration(b.OffsetNS+b.ErrorNS) < ahead || b.ErrorNS > int64(10*time.Millisecond) {
					t.Errorf("a clock %v ahead has the bound %+v", ahead, b)
				}
				if err := m.Done(nil); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
	if err != nil {
		t.Fatal(err)
	}
	for step, at := range instants {
		if len(at) != 3 || !at[0].Equal(at[1]) || !at[0].Equal(at[2]) {
			t.Errorf("%s begins at %v", step, at)
		}
	}
}

// TestBound: the bound holds the truth at each moment so far, of a clock that drifts, and is as narrow as the best answers allow. In
// the second half answers are slow.
func TestBound(t *testing.T) {
	const length, ahead, drift = 40 * time.Second, 3 * time.Millisecond, 50 * time.Microsecond // each second
	p, h := plan, hello(1)
	p.Generators, h.Of = 1, 1
	_, err := coordinated(t, p, func(l *pipes, _ func()) {
		begun := wall()
		offset := func() time.Duration { return ahead + time.Duration(wall().Sub(begun).Seconds()*float64(drift)) }
		link := network.NewLink(network.Plan([]string{"coordinator:0.5-1:latency=200ms"}), func(network.Condition) bool { return true }, length,
			clock.Nano, seed.Rand(1, seed.Conditions))
		link.Begin()
		m, err := coordinate.Attend(context.Background(), link.Wrap(l.dial()), h, func() time.Time { return wall().Add(offset()) })
		if err != nil {
			t.Error(err)
			return
		}
		for at := time.Duration(0); at < length; at += 1900 * time.Millisecond {
			b, now := m.Bound(), offset()
			low, high := time.Duration(b.OffsetNS-b.ErrorNS), time.Duration(b.OffsetNS+b.ErrorNS)
			slack := 500 * time.Microsecond
			if at > length/2 { // the clocks may have drifted apart since
				slack = 5 * time.Millisecond
			}
			if low > ahead || high < now || high-low > now-ahead+slack {
				t.Errorf("after %v: from %v to %v, and it was %v to %v ahead", at, low, high, ahead, now)
			}
			time.Sleep(1900 * time.Millisecond)
		}
		link.End()
		if err := m.Done(nil); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// TestFaultsEndTheRun: whatever happens to one generator, all end within 30 seconds, and all are told why.
func TestFaultsEndTheRun(t *testing.T) {
	for name, x := range map[string]struct {
		third func(l *pipes) error // what the third does, or nil
		want  string
	}{
		"killed": {func(l *pipes) error {
			conn := l.dial()
			time.AfterFunc(3*time.Second, func() { _ = conn.Close() })
			return generator(conn, hello(3), wall, "start 1", "start 2", "end")
		}, "generator 3 of 3 (here) is lost: its process or its connection has ended"},
		"paused": {func(l *pipes) error {
			conn := l.dial()
			return generator(&pausing{Conn: conn, at: wall().Add(3 * time.Second)}, hello(3), wall, "start 1", "start 2", "end")
		}, "generator 3 of 3 (here) is lost: nothing came from it for 10s"},
		"not heard": {func(l *pipes) error { // it hears the coordinator give it up, which is not what the run ended for
			err := generator(mute{&pausing{Conn: l.dial(), at: wall().Add(3 * time.Second)}}, hello(3), wall, "start 1", "start 2", "end")
			if err == nil || err.Error() != "the coordinator is lost: its process or its connection has ended" {
				t.Errorf("who is not heard is told %v", err)
			}
			return err
		}, "generator 3 of 3 (here) is lost: nothing came from it for 10s"},
		"cut off": {func(l *pipes) error {
			link := network.NewLink(network.Plan([]string{"coordinator:cut"}), func(network.Condition) bool { return true }, 0, clock.Nano,
				seed.Rand(1, seed.Conditions))
			defer func() { // not before the coordinator has noticed: the end of a connection does not arrive either
				time.Sleep(time.Second)
				link.End()
			}()
			time.AfterFunc(3*time.Second, link.Begin)
			begun := wall()
			err := generator(link.Wrap(l.dial()), hello(3), wall, "start 1", "start 2", "end")
			if took := wall().Sub(begun); err == nil || !strings.Contains(err.Error(), "the coordinator is lost") || took > 30*time.Second {
				t.Errorf("who was cut off ended after %v with %v", took, err)
			}
			return err
		}, "generator 3 of 3 (here) is lost: nothing came from it for 10s"},
		"another plan": {func(l *pipes) error {
			h := hello(3)
			h.Fingerprint = "beef"
			return generator(l.dial(), h, wall)
		}, "generator 3 (here) has another plan: its fingerprint is beef, and not f00d"},
		"of number 0": {func(l *pipes) error { return generator(l.dial(), hello(0), wall) },
			"generator 0/3 (here) does not fit: the coordinator expects 3"},
		"of a number too many": {func(l *pipes) error { return generator(l.dial(), hello(4), wall) },
			"generator 4/3 (here) does not fit: the coordinator expects 3"},
		"twice": {func(l *pipes) error { return generator(l.dial(), hello(2), wall) }, "there are two generators 2/3"},
		"of another number": {func(l *pipes) error {
			h := hello(4)
			h.Of = 4
			return generator(l.dial(), h, wall)
		}, "generator 4/4 (here) does not fit: the coordinator expects 3"},
		"missing": {nil, "generators 3 of 3 did not join within 20s"},
		"failed": {func(l *pipes) error {
			m, err := coordinate.Attend(context.Background(), l.dial(), hello(3), wall)
			if err == nil {
				err = m.Done(errors.New("no disk"))
			}
			return err
		}, "generator 3 (here) failed: no disk"},
		"failed in a pass": {func(l *pipes) error {
			m, err := coordinate.Attend(context.Background(), l.dial(), hello(3), wall)
			if err != nil {
				return err
			}
			if _, err = m.Meet(m.Context(), "end"); err == nil { // the others are about to start
				return errors.New("it met others that are elsewhere")
			}
			time.Sleep(time.Second) // the others have left
			return m.Done(fmt.Errorf("no Redis (%w)", errors.New("out of memory")))
		}, "generator 3 (here) failed: no Redis (out of memory)"},
		"elsewhere": {func(l *pipes) error { return generator(l.dial(), hello(3), wall, "start 2") },
			"generators are not at the same step"},
		"elsewhere for long": {func(l *pipes) error {
			m, err := coordinate.Attend(context.Background(), l.dial(), hello(3), wall)
			if err != nil {
				return err
			}
			_, _ = m.Meet(m.Context(), "start 2")
			_ = clock.Wall{}.Sleep(m.Context(), time.Minute)
			return m.Done(nil)
		}, "generators are not at the same step"},
		"ended early": {func(l *pipes) error { return generator(l.dial(), hello(3), wall) }, "generator 3 (here) has ended, and others wait for it"},
		"ended in a pass": {func(l *pipes) error {
			m, err := coordinate.Attend(context.Background(), l.dial(), hello(3), wall)
			if err != nil {
				return err
			}
			_, err = m.Meet(m.Context(), "start 1")
			return errors.Join(err, m.Done(nil))
		}, "generator 3 (here) has ended, and others wait for it at start 2"},
	} {
		t.Run(name, func(t *testing.T) {
			var told [2]error
			took, err := coordinated(t, plan, func(l *pipes, _ func()) {
				var all sync.WaitGroup
				for i := range 2 {
					all.Go(func() { told[i] = generator(l.dial(), hello(i+1), wall, "start 1", "start 2", "end") })
				}
				time.Sleep(time.Second)
				if x.third != nil {
					all.Go(func() { _ = x.third(l) })
				}
				all.Wait()
			})
			stopped, ok := errors.AsType[*coordinate.StoppedError](err)
			if !ok || !strings.Contains(stopped.Reason, x.want) {
				t.Errorf("it ended with %v; want %q", err, x.want)
			}
			// Who is silent was heard last after 3 s, by a beat; all others are known at once.
			within := map[string]time.Duration{"killed": 4 * time.Second, "paused": 13 * time.Second, "not heard": 13 * time.Second,
				"cut off": 13 * time.Second, "missing": plan.Wait, "failed in a pass": 2 * time.Second, "ended in a pass": 6 * time.Second,
				"elsewhere for long": 16 * time.Second}[name]
			if took > max(time.Second, within)+100*time.Millisecond {
				t.Errorf("it ended after %v", took)
			}
			if strings.Contains(stopped.Reason, "failed: ") != strings.Contains(x.want, "failed: ") {
				t.Errorf("who was stopped has failed: %v", err)
			}
			for i, err := range told {
				if apart := name == "failed in a pass" && err != nil && strings.Contains(err.Error(), "not at the same step"); !apart &&
					(err == nil || err.Error() != stopped.Error()) {
					t.Errorf("generator %d was told %v", i+1, err)
				}
			}
		})
	}
}

// pausing is a connection of a process that is stopped for a minute from a moment on.
type pausing struct {
	net.Conn
	at time.Time
}

func (p *pausing) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if wall().After(p.at) {
		time.Sleep(time.Minute)
	}
	return n, err
}

func (p *pausing) Write(b []byte) (int, error) {
	if wall().After(p.at) {
		return len(b), nil
	}
	return p.Conn.Write(b)
}

// mute is a connection on which nothing that is said arrives from a moment on, of a process whose time stands still.
type mute struct{ *pausing }

func (m mute) Read(b []byte) (int, error) { return m.Conn.Read(b) }

func (mute) SetReadDeadline(time.Time) error { return nil }

// TestLateOnesDoNoHarm: a second generator of a number, and one without the token, are refused,
// and the run goes on.
func TestLateOnesDoNoHarm(t *testing.T) {
	_, err := coordinated(t, plan, func(l *pipes, _ func()) {
		stranger := hello(3)
		stranger.Token = "guess"
		if err := generator(l.dial(), stranger, wall); err == nil || !strings.Contains(err.Error(), "another token") {
			t.Errorf("a stranger: %v", err)
		}
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				if err := generator(l.dial(), hello(i+1), wall, "start 1"); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(2 * time.Second)
		if err := generator(l.dial(), hello(2), wall); err == nil || !strings.Contains(err.Error(), "two generators 2/3") {
			t.Errorf("a second one: %v", err)
		}
		all.Wait()
	})
	if err != nil {
		t.Error(err)
	}
}

// TestLostCoordinator: generators end if the coordinator's connections end, or if it says nothing any
// longer, as after it was started again.
func TestLostCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newPipes(), coordinate.NewCoordinator(plan)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- c.Run(ctx, l) }()
		conn := l.dial()
		silent := &deaf{Conn: conn, at: wall().Add(3 * time.Second)}
		begun := wall()
		err := generator(silent, hello(1), wall, "start 1")
		if took := wall().Sub(begun); err == nil || !strings.Contains(err.Error(), "the coordinator is lost") || took > 30*time.Second {
			t.Errorf("it ended after %v with %v", took, err)
		}
		cancel()
		if err := <-ended; err == nil {
			t.Error("the coordinator saw nothing")
		}
	})
}

// TestCoordinatorStartedAgain: generators that wait for others, or measure, when their coordinator is killed end with the reason. Who
// comes to the one that was started in its place has a run of its own.
func TestCoordinatorStartedAgain(t *testing.T) {
	for joined, doing := range map[int]string{2: "wait", 3: "measure"} {
		synctest.Test(t, func(t *testing.T) {
			var all sync.WaitGroup
			members := func(l *pipes, n int, ended func(error)) {
				for i := range n {
					all.Go(func() { ended(generator(l.dial(), hello(i+1), wall, "start 1", "end")) })
				}
			}
			first, again := newPipes(), newPipes()
			all.Go(func() { _ = coordinate.NewCoordinator(plan).Run(t.Context(), first) })
			begun := wall()
			members(first, joined, func(err error) {
				if took := wall().Sub(begun); err == nil || !strings.Contains(err.Error(), "the coordinator is lost") || took > 30*time.Second {
					t.Errorf("who %s ended after %v with %v", doing, took, err)
				}
			})
			time.Sleep(2 * time.Second)
			first.die()
			all.Go(func() {
				if err := coordinate.NewCoordinator(plan).Run(t.Context(), again); err != nil {
					t.Errorf("started again: %v", err)
				}
			})
			members(again, 3, func(err error) {
				if err != nil {
					t.Errorf("of the second run: %v", err)
				}
			})
			all.Wait()
		})
	}
}

// deaf is a connection by which nothing comes from a moment on.
type deaf struct {
	net.Conn
	at time.Time
}

func (d *deaf) Read(b []byte) (int, error) {
	for {
		n, err := d.Conn.Read(b)
		if err != nil || wall().Before(d.at) {
			return n, err
		}
	}
}

// TestInterrupt: generators of a run that is interrupted are told, and their files still come.
func TestInterrupt(t *testing.T) {
	dir := t.TempDir()
	big := bytes.Repeat([]byte("history "), 100_000)
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o700), os.WriteFile(filepath.Join(dir, "sub", "h"), big, 0o600),
		os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	kept := map[string]*buffer{}
	p := plan
	p.Generators, p.Collect = 1, true
	p.Keep = func(index int, name string) (io.WriteCloser, error) {
		kept[name] = new(buffer)
		return kept[name], nil
	}
	var told error
	synctest.Test(t, func(t *testing.T) {
		l, c := newPipes(), coordinate.NewCoordinator(p)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errors.New("interrupted")) })
		var member sync.WaitGroup
		member.Go(func() {
			h := hello(1)
			h.Of = 1
			m, err := coordinate.Attend(context.Background(), l.dial(), h, wall)
			if err != nil {
				told = err
				return
			}
			<-m.Context().Done()
			told = context.Cause(m.Context())
			if _, err := coordinate.Attend(context.Background(), l.dial(), h, wall); err == nil || err.Error() != "interrupted" {
				t.Errorf("who comes now is told %v", err)
			}
			if err := errors.Join(m.SendFiles(dir, "sub", "empty", "none"), m.Done(nil)); err != nil {
				t.Error(err)
			}
		})
		if err := c.Run(ctx, l); err == nil || err.Error() != "interrupted" {
			t.Errorf("it ended with %v", err)
		}
		member.Wait()
	})
	if told == nil || told.Error() != "interrupted" {
		t.Errorf("the generator was told %v", told)
	}
	if len(kept) != 2 || !bytes.Equal(kept["sub/h"].Bytes(), big) || kept["empty"].Len() != 0 || !kept["empty"].closed {
		t.Errorf("%d files came, or not whole", len(kept))
	}
}

// TestFilesOfLostCoordinator: a generator whose coordinator is killed while it takes a file does not wait for an answer.
func TestFilesOfLostCoordinator(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "h"), []byte("history"), 0o600); err != nil {
		t.Fatal(err)
	}
	var die func()
	p := plan
	p.Generators, p.Collect = 1, true
	p.Keep = func(int, string) (io.WriteCloser, error) {
		die()
		return nil, errors.New("killed")
	}
	_, _ = coordinated(t, p, func(l *pipes, _ func()) {
		die = l.die
		h := hello(1)
		h.Of = 1
		m, err := coordinate.Attend(context.Background(), l.dial(), h, wall)
		if err != nil {
			t.Error(err)
			return
		}
		begun := wall()
		err = m.SendFiles(dir, "h")
		if took := wall().Sub(begun); err == nil || !strings.Contains(err.Error(), "the coordinator is lost: its process or its connection has ended") || took > time.Second {
			t.Errorf("it ended after %v with %v", took, err)
		}
		_ = m.Done(err) // nobody hears it
	})
}

type buffer struct {
	bytes.Buffer
	closed bool
}

func (b *buffer) Close() error { b.closed = true; return nil }

// TestInterruptedTogether: generators that were interrupted in a pass still meet at its end, and one
// that has gone keeps the others from waiting for it.
func TestInterruptedTogether(t *testing.T) {
	var mu sync.Mutex
	met := 0
	took, err := coordinated(t, plan, func(l *pipes, interrupt func()) {
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				m, err := coordinate.Attend(context.Background(), l.dial(), hello(i+1), wall)
				if err != nil {
					t.Error(err)
					return
				}
				if i == 2 {
					time.AfterFunc(3*time.Second, interrupt)
				}
				<-m.Context().Done()
				if _, err := m.Meet(context.Background(), "end"); err == nil {
					mu.Lock()
					met++
					mu.Unlock()
				}
				if i < 2 {
					if _, err := m.Meet(context.Background(), "next"); err == nil || err.Error() != "interrupted" {
						t.Errorf("who waits for one that has gone is told %v", err)
					}
				}
				_ = m.Done(nil)
			})
		}
		all.Wait()
	})
	if met != 3 || err == nil || err.Error() != "context canceled" || took > 10*time.Second {
		t.Errorf("%d met, and it ended after %v with %v", met, took, err)
	}
}
