package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// member is a generator's side of a coordinator.
type member struct {
	welcome
	hello
	at   meeting
	conn *nats.Conn
	now  func() time.Time
	// ctx ends when the coordinator stops the run or is lost, and link when it is lost.
	ctx, link    context.Context
	cancel, lose context.CancelCauseFunc
	// leaving ends the reading of the clock, and unread is closed when it has ended.
	leaving, unread chan struct{}

	mu    sync.Mutex
	clock reckoning
}

const (
	// retry is how soon a generator tries again to reach a coordinator that is not there yet.
	retry = 200 * time.Millisecond
	// askedAtOnce is how often the clock is read at each step: the fastest answer counts.
	askedAtOnce = 8
)

// join joins the coordinator at a meeting, for which it waits a while. now is the clock of the generator.
func join(ctx context.Context, at meeting, h hello, wait time.Duration, now func() time.Time) (*member, error) {
	limited, done := context.WithTimeout(ctx, wait)
	defer done()
	for {
		member, err := attend(ctx, limited, at, h, now)
		_, refused := errors.AsType[*stoppedError](err)
		if err == nil || refused || errors.Is(err, nats.ErrAuthorization) { // a password does not become right
			return member, err
		}
		select {
		case <-limited.Done():
			if errors.Is(err, nats.ErrNoResponders) {
				err = errors.New("start it as the same command without --generator")
			}
			return nil, fmt.Errorf("no coordinator answers at %s%s: %w", at.server.Host, at.server.Path, err)
		case <-time.After(retry):
		}
	}
}

// attend is one attempt to join.
func attend(ctx, limited context.Context, at meeting, h hello, now func() time.Time) (*member, error) {
	conn, err := at.connect()
	if err != nil {
		return nil, err
	}
	m := &member{hello: h, at: at, conn: conn, now: now, leaving: make(chan struct{}), unread: make(chan struct{})}
	m.link, m.lose = context.WithCancelCause(context.WithoutCancel(ctx))
	m.ctx, m.cancel = context.WithCancelCause(ctx)
	context.AfterFunc(m.link, func() { m.cancel(context.Cause(m.link)) })
	m.Inbox = nats.NewInbox()
	_, err = subscribe(m.conn, m.Inbox, 1, m.hear)
	if err == nil {
		err = ask(limited, m.conn, m.at.join(), request{callJoin, m.Index, m.hello}, &m.welcome)
	}
	if err == nil {
		err = m.readClock(askedAtOnce)
	}
	if err != nil {
		m.close()
		return nil, err
	}
	m.clock.all = m.clock.now // nothing was timed while the first answers came
	go m.beat()
	return m, nil
}

// hear takes what the coordinator sends.
func (m *member) hear(msg *nats.Msg) {
	var got message
	if err := json.Unmarshal(msg.Data, &got); err != nil {
		return
	}
	switch got.Kind {
	case sentPing:
		_ = msg.Respond(nil) // a connection that is gone is noticed by who asked
	case sentStop:
		m.cancel(&stoppedError{got.Text})
	}
}

// call makes a call. Without an answer the coordinator is lost. ctx ends the wait.
func (m *member) call(ctx context.Context, subject string, q request, value any) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.link, func() { cancel(context.Cause(m.link)) })()
	q.Index = m.Index
	err := ask(ctx, m.conn, subject, q, value)
	if _, refused := errors.AsType[*stoppedError](err); err == nil || refused {
		return err
	}
	if ctx.Err() == nil || errors.Is(err, context.DeadlineExceeded) {
		m.lose(&stoppedError{"the coordinator is lost: " + ended(err)})
	}
	return cmp.Or(context.Cause(m.link), context.Cause(ctx), err)
}

// quick is a call that is answered at once.
func (m *member) quick(subject string, q request, value any) error {
	ctx, cancel := context.WithTimeout(context.Background(), silence)
	defer cancel()
	return m.call(ctx, subject, q, value)
}

// readClock reads the clock several times.
func (m *member) readClock(times int) error {
	for range times {
		var at int64
		sent := m.now()
		if err := m.quick(m.at.clock(), request{Call: callTime}, &at); err != nil {
			return err
		}
		received := m.now()
		m.mu.Lock()
		m.clock.add(exchange(sent, time.Unix(0, at), received), received)
		m.mu.Unlock()
	}
	return nil
}

// beat reads the clock now and then until the member leaves or the connection is closed. It goes on if the run is
// stopped: the coordinator waits for the results.
func (m *member) beat() {
	defer close(m.unread)
	for m.readClock(1) == nil {
		select {
		case <-m.leaving:
			return
		case <-m.link.Done():
			return
		case <-time.After(beat):
		}
	}
}

// bound is where the clock of this process stands, by all that was measured so far.
func (m *member) bound() offset {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock.until(m.now())
}

// meet waits for the others at a step. The clock is read at each step. A run that is stopped while nothing has failed
// still meets, so that its generators end at the same step.
func (m *member) meet(ctx context.Context, step string) (time.Time, error) {
	if err := m.readClock(askedAtOnce); err != nil {
		return time.Time{}, err
	}
	var at int64
	if err := m.call(ctx, m.at.join(), request{Call: callMeet, Body: step}, &at); err != nil {
		return time.Time{}, err
	}
	return time.Unix(0, at), nil
}

// tell says what the generator does, and which share of the whole it has done.
func (m *member) tell(text string, share float64) {
	data, _ := json.Marshal(request{callTell, m.Index, progress{text, share}}) // texts and numbers
	// a connection that is gone ends the context
	_ = m.conn.Publish(m.at.join(), data)
}

// sendFiles sends files and folders of dir, by their names, also of a run that was stopped. What is not there is left
// out.
func (m *member) sendFiles(dir string, names ...string) error {
	files := os.DirFS(dir)
	for _, name := range names {
		err := fs.WalkDir(files, name, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
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

func (m *member) sendFile(files fs.FS, name string) error {
	file, err := files.Open(name)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was read
	data := make([]byte, partSize)
	for last := false; !last; {
		n, err := io.ReadFull(file, data)
		last = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return err
		}
		if err := m.quick(m.at.join(), request{Call: callFile, Body: part{name, data[:n], last}}, nil); err != nil {
			return err
		}
	}
	return nil
}

// done says that the generator has ended, and why if it failed. It returns when the coordinator has heard it.
func (m *member) done(failed error) error {
	text := ""
	if failed != nil {
		text = failed.Error()
	}
	// The coordinator may be gone as soon as it has answered: nobody asks it for the time then, and takes it for lost.
	close(m.leaving)
	<-m.unread
	err := m.quick(m.at.join(), request{Call: callDone, Body: text}, nil)
	m.close()
	return err
}

// close ends the connection.
func (m *member) close() {
	m.lose(nil)
	m.cancel(nil)
	m.conn.Close()
}
