package coordinate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/quotabench/quotabench/internal/generators"
)

// Member is a generator's side of a coordinator.
type Member struct {
	Welcome
	w      *wire
	now    func() time.Time
	ctx    context.Context // ends when the coordinator stops the run or is lost
	cancel context.CancelCauseFunc
	// begin and taken are the answers to ready and to parts of files.
	begin, taken chan *message
	alone        chan struct{} // no step will be met any longer
	gone         chan struct{} // the connection has ended
	listening    sync.WaitGroup

	mu    sync.Mutex
	clock reckoning
	ask   int // how many questions follow the one under way
	known chan struct{}
	knows func() // closes it
}

var _ generators.Member = (*Member)(nil)

const (
	// retry is how soon a generator tries again to reach a coordinator that is not there yet.
	retry = 200 * time.Millisecond
	// askedAtOnce is how often the clock is read at each step: the fastest answer counts.
	askedAtOnce = 8
	// partSize is how many bytes of a file are in one message. A server of NATS takes 1 MiB.
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
	m := &Member{w: newWire(conn), now: now, begin: make(chan *message, 1), taken: make(chan *message, 1),
		alone: make(chan struct{}), gone: make(chan struct{}), known: make(chan struct{})}
	m.knows = sync.OnceFunc(func() { close(m.known) })
	err := m.w.send(&message{Kind: kindJoin, Hello: &h})
	first := new(message)
	if err == nil {
		first, err = m.w.receive()
	}
	switch {
	case err != nil:
		err = fmt.Errorf("the coordinator does not answer: %w", err)
	case first.Kind == kindStop:
		err = &StoppedError{first.Text}
	case first.Welcome == nil:
		err = fmt.Errorf("what answers is no coordinator: it says %q", first.Kind)
	}
	if err != nil {
		_ = conn.Close() // what went wrong before says more
		return nil, err
	}
	m.Welcome = *first.Welcome
	m.ctx, m.cancel = context.WithCancelCause(ctx)
	m.listening.Go(m.listen)
	m.listening.Go(m.beat)
	select {
	case <-m.known:
	case <-m.ctx.Done():
		return nil, errors.Join(context.Cause(m.ctx), m.Close())
	}
	return m, nil
}

// Context ends when the coordinator stops the run or is lost, which is its cause.
func (m *Member) Context() context.Context { return m.ctx }

// listen takes what the coordinator says.
func (m *Member) listen() {
	alone := sync.OnceFunc(func() { close(m.alone) })
	defer close(m.gone)
	defer alone()
	for {
		got, err := m.w.receive()
		if err != nil {
			m.cancel(&StoppedError{fmt.Sprintf("the coordinator is lost: %s", ended(err))})
			return
		}
		switch got.Kind {
		case kindPong:
			m.answered(got)
		case kindStop:
			m.cancel(&StoppedError{got.Text})
			if got.Last {
				alone()
			}
		case kindGo:
			offer(m.begin, got)
		case kindTaken:
			offer(m.taken, got)
		}
	}
}

// offer gives an answer to who waits for it. If the wait for an earlier one was given up, nobody does.
func offer(to chan *message, m *message) {
	select {
	case to <- m:
	default:
	}
}

// answered takes a reading of the clock, and asks again if there are questions left.
func (m *Member) answered(got *message) {
	received := m.now()
	m.mu.Lock()
	m.clock.add(generators.Exchange(time.Unix(0, got.Sent), time.Unix(0, got.At), received), received)
	m.ask--
	again := m.ask > 0
	if !again {
		m.knows()
	}
	m.mu.Unlock()
	if again {
		go func() { _ = m.ping() }() // listen must go on, and a connection that is gone ends it
	}
}

func (m *Member) ping() error { return m.w.send(&message{Kind: kindPing, Sent: m.now().UnixNano()}) }

// askTime reads the clock several times, the answers of which come in the background.
func (m *Member) askTime(times int) error {
	m.mu.Lock()
	under := m.ask > 0
	m.ask = max(m.ask, times)
	m.mu.Unlock()
	if under {
		return nil
	}
	return m.ping()
}

// beat reads the clock now and then until the connection is closed. It goes on if the run is
// stopped: the coordinator waits for the results.
func (m *Member) beat() {
	for err := m.askTime(askedAtOnce); err == nil; err = m.askTime(1) {
		select {
		case <-m.gone:
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
	err := m.askTime(askedAtOnce)
	if err == nil {
		err = m.w.send(&message{Kind: kindReady, Text: step})
	}
	if err != nil {
		return time.Time{}, m.because(err)
	}
	for {
		var got *message
		select {
		case got = <-m.begin:
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		case <-m.alone:
			select {
			case got = <-m.begin: // it came before
			default:
				return time.Time{}, context.Cause(m.ctx)
			}
		}
		switch {
		case got.At == 0:
			return time.Time{}, &StoppedError{got.Text}
		case got.Text == step: // not one whose wait was given up
			return time.Unix(0, got.At), nil
		}
	}
}

// because is why the run ends if that is known, or else err.
func (m *Member) because(err error) error {
	if cause := context.Cause(m.ctx); cause != nil {
		return cause
	}
	return err
}

// Tell says what the generator does, and which share of the whole it has done.
func (m *Member) Tell(text string, share float64) {
	_ = m.w.send(&message{Kind: kindProgress, Text: text, Share: share}) // a connection that is gone ends the context
}

// SendFiles sends files and folders of dir, by their names, which a stopped run does, too. What is not
// there is left out.
func (m *Member) SendFiles(dir string, names ...string) error {
	for _, name := range names {
		err := filepath.WalkDir(filepath.Join(dir, name), func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			name, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			return m.sendFile(path, filepath.ToSlash(name))
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (m *Member) sendFile(path, name string) error {
	f, err := os.Open(path)
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
		if err := m.w.send(&message{Kind: kindFile, Text: name, Data: part[:n], Last: last}); err != nil {
			return m.because(err)
		}
		select {
		case <-m.taken:
			continue
		case <-m.gone:
		case <-time.After(Silence):
		}
		return m.because(fmt.Errorf("the coordinator did not take %s", name))
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
	err := m.w.send(&message{Kind: kindDone, Text: text})
	select {
	case <-m.gone: // a connection that is closed with an answer unread may lose what was sent
	case <-time.After(Silence):
	}
	return errors.Join(err, m.Close())
}

// Close ends the connection.
func (m *Member) Close() error {
	err := m.w.Close()
	m.listening.Wait()
	m.cancel(nil)
	return err
}
