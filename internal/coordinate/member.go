package coordinate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"sync"
	"time"

	"github.com/quotabench/quotabench/internal/generators"
)

// Member is a generator's side of a coordinator.
type Member struct {
	Welcome
	to     *rpc.Client
	now    func() time.Time
	ctx    context.Context // ends when the coordinator stops the run or is lost
	cancel context.CancelCauseFunc
	closed chan struct{}

	mu    sync.Mutex
	clock reckoning
}

var _ generators.Member = (*Member)(nil)

const (
	// retry is how soon a generator tries again to reach a coordinator that is not there yet.
	retry = 200 * time.Millisecond
	// askedAtOnce is how often the clock is read at each step: the fastest answer counts.
	askedAtOnce = 8
	// partSize is how many bytes of a file are in one call. A server of NATS takes 1 MiB.
	partSize = 256 << 10
)

// Join joins the coordinator at a URL, for which it waits a while. now is the clock of the
// generator.
func Join(ctx context.Context, join string, h Hello, wait time.Duration, now func() time.Time) (*Member, error) {
	at, t, err := Parse(join)
	if err != nil {
		return nil, err
	}
	h.Token = TokenOf(join)
	limited, done := context.WithTimeout(ctx, wait)
	defer done()
	conn, err := t.Dial(limited, at)
	for err != nil {
		select {
		case <-limited.Done():
			return nil, fmt.Errorf("no coordinator answers at %s: %w", at.Host, err)
		case <-time.After(retry):
		}
		conn, err = t.Dial(limited, at)
	}
	return Attend(ctx, conn, h, now)
}

// TokenOf is the token that a generator shows to a coordinator at a URL, if its transport
// does not ask for it by itself.
func TokenOf(join string) string {
	at, _, err := Parse(join)
	if err != nil || at.Scheme != "tcp" {
		return ""
	}
	return at.User.Username()
}

// Attend is [Join] on a connection.
func Attend(ctx context.Context, conn net.Conn, h Hello, now func() time.Time) (*Member, error) {
	m := &Member{to: jsonrpc.NewClient(limited{conn}), now: now, closed: make(chan struct{})}
	m.ctx, m.cancel = context.WithCancelCause(ctx)
	err := m.to.Call("Door.Join", h, &m.Welcome)
	if said, refused := errors.AsType[rpc.ServerError](err); refused {
		err = &StoppedError{said.Error()}
	} else if err != nil {
		err = fmt.Errorf("the coordinator does not answer: %w", err)
	}
	if err == nil {
		go m.watch()
		err = m.readClock(askedAtOnce)
	}
	if err != nil {
		_ = m.Close() // what went wrong before says more
		return nil, err
	}
	m.clock.all = m.clock.now // nothing was timed while the first answers came
	go m.beat()
	return m, nil
}

// Context ends when the coordinator stops the run or is lost, which is its cause.
func (m *Member) Context() context.Context { return m.ctx }

// watch waits until the coordinator stops the run, or is lost.
func (m *Member) watch() {
	var why string
	if err := m.to.Call("Run.Stopped", 0, &why); err != nil {
		why = "the coordinator is lost: " + ended(err)
	}
	m.cancel(&StoppedError{why})
}

// ask makes a call. Without an answer the coordinator is lost, which [Member.watch] sees. ctx ends the wait.
func (m *Member) ask(ctx context.Context, method string, args, reply any) error {
	call := m.to.Go("Run."+method, args, reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if call.Error == nil {
		return nil
	}
	said, refused := errors.AsType[rpc.ServerError](call.Error)
	if !refused {
		<-m.ctx.Done()
	}
	return cmp.Or(context.Cause(m.ctx), error(&StoppedError{said.Error()}))
}

// readClock reads the clock several times.
func (m *Member) readClock(times int) error {
	for range times {
		var at int64
		sent := m.now()
		if err := m.ask(context.Background(), "Time", 0, &at); err != nil {
			return err
		}
		received := m.now()
		m.mu.Lock()
		m.clock.add(generators.Exchange(sent, time.Unix(0, at), received), received)
		m.mu.Unlock()
	}
	return nil
}

// beat reads the clock now and then until the connection is closed. It goes on if the run is
// stopped: the coordinator waits for the results.
func (m *Member) beat() {
	for m.readClock(1) == nil {
		select {
		case <-m.closed:
			return
		case <-time.After(beat):
		}
	}
}

// Bound implements [generators.Member].
func (m *Member) Bound() generators.Clock {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock.until(m.now())
}

// Meet implements [generators.Member]. The clock is read at each step. A run that is stopped
// while nothing has failed still meets, so that its generators end at the same step.
func (m *Member) Meet(ctx context.Context, step string) (time.Time, error) {
	if err := m.readClock(askedAtOnce); err != nil {
		return time.Time{}, err
	}
	var at int64
	if err := m.ask(ctx, "Meet", step, &at); err != nil {
		return time.Time{}, err
	}
	return time.Unix(0, at), nil
}

// Tell says what the generator does, and which share of the whole it has done.
func (m *Member) Tell(text string, share float64) {
	m.to.Go("Run.Tell", State{text, share}, new(bool), nil) // a connection that is gone ends the context
}

// SendFiles sends files and folders of dir, by their names, which a stopped run does, too. What is not
// there is left out.
func (m *Member) SendFiles(dir string, names ...string) error {
	files := os.DirFS(dir)
	for _, name := range names {
		err := fs.WalkDir(files, name, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			return m.sendFile(files, name)
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (m *Member) sendFile(files fs.FS, name string) error {
	f, err := files.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was read
	part := make([]byte, partSize)
	for last := false; !last; {
		n, err := io.ReadFull(f, part)
		last = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return err
		}
		if err := m.ask(context.Background(), "File", Part{name, part[:n], last}, new(bool)); err != nil {
			return err
		}
	}
	return nil
}

// Done says that the generator has ended, and why if it failed. It returns when the coordinator
// has heard it.
func (m *Member) Done(failed error) error {
	text := ""
	if failed != nil {
		text = failed.Error()
	}
	return errors.Join(m.ask(context.Background(), "Done", text, new(bool)), m.Close())
}

// Close ends the connection.
func (m *Member) Close() error {
	m.cancel(nil)
	close(m.closed)
	return m.to.Close()
}

// drift is how much two clocks drift apart at most, as one part in so many: 100 µs a second.
// Quartz keeps to half of that, and its correction by NTP is of that size.
const drift = 10_000

// reckoning is where a clock stands against the coordinator's, and where it stood.
type reckoning struct {
	now  generators.Clock // at the moment of
	last time.Time
	all  generators.Clock // at all moments so far
}

// add takes a reading at a moment.
func (r *reckoning) add(c generators.Clock, at time.Time) {
	if r.last.IsZero() {
		r.now, r.all, r.last = c, c, at
		return
	}
	r.now = r.at(at).Both(c)
	r.all, r.last = r.all.Spanning(r.now), at
}

// at is the bound at a later moment, for which the clocks may have drifted.
func (r *reckoning) at(t time.Time) generators.Clock {
	c := r.now
	c.ErrorNS += int64(max(0, t.Sub(r.last))) / drift
	return c
}

// until is the bound from the first reading to a moment after the last one.
func (r *reckoning) until(t time.Time) generators.Clock { return r.all.Spanning(r.at(t)) }
