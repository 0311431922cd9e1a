package coordinate

import (
	"cmp"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
)

// connection is that of a generator, or of who would be one.
type connection struct {
	rpc.ServerCodec
	c     *Coordinator
	calls *rpc.Server // those of [Run] once it has joined
	g     *member     // nil before
}

// serve serves one connection until it ends.
func (c *Coordinator) serve(conn net.Conn) {
	l := &connection{ServerCodec: jsonrpc.NewServerCodec(limited{conn}), c: c, calls: rpc.NewServer()}
	_ = l.calls.RegisterName("Door", &Door{l}) // it has a call
	l.calls.ServeCodec(l)
}

// ReadRequestHeader implements [rpc.ServerCodec]. It notes the end of the connection.
func (l *connection) ReadRequestHeader(r *rpc.Request) error {
	err := l.ServerCodec.ReadRequestHeader(r)
	if err != nil {
		l.leaves(err)
	}
	return err
}

// Door has the call of who has not joined.
type Door struct{ l *connection }

// Join admits a generator, or says why not.
func (d *Door) Join(h Hello, w *Welcome) error {
	c, g := d.l.c, &member{Hello: h}
	c.mu.Lock()
	defer c.mu.Unlock()
	if reason := c.join(g); reason != "" {
		return errors.New(reason)
	}
	d.l.g, *w = g, c.plan.Welcome
	return d.l.calls.RegisterName("Run", &Run{c, g})
}

// join admits a generator, or says why not. What can never become a run ends all, but nobody who
// comes too late does.
func (c *Coordinator) join(g *member) (refused string) {
	p := &c.plan
	switch other := c.members[g.Index]; {
	case subtle.ConstantTimeCompare([]byte(p.Token), []byte(g.Token)) == 0:
		return "the coordinator was given another token"
	case c.stopped != "":
		return c.stopped
	case g.Of != p.Generators || g.Index < 1 || g.Index > g.Of:
		refused = fmt.Sprintf("generator %d/%d (%s) does not fit: the coordinator expects %d", g.Index, g.Of, g.Place, p.Generators)
	case other != nil:
		refused = fmt.Sprintf("there are two generators %d/%d: %s and %s", g.Index, g.Of, other.Place, g.Place)
	case g.Fingerprint != p.Fingerprint:
		refused = fmt.Sprintf("generator %d (%s) has another plan: its fingerprint is %s, and not %s; start all with the same "+
			"settings and the same version", g.Index, g.Place, g.Fingerprint, p.Fingerprint)
	}
	if refused != "" {
		if !c.started {
			c.fail("%s", refused)
		}
		return refused
	}
	g.Text = "waits for the others"
	c.members[g.Index] = g
	c.started = len(c.members) == p.Generators
	return ""
}

// Run has the calls of a generator. What a call returns is an answer to the generator alone.
type Run struct {
	c *Coordinator
	g *member
}

// Time is the coordinator's, in nanoseconds since 1970.
func (Run) Time(_ int, at *int64) error {
	*at = clock.Wall{}.Now().UnixNano()
	return nil
}

// Stopped returns when the run is stopped, and why. To a generator that has ended, or is lost, it says nothing.
func (r Run) Stopped(_ int, why *string) error {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	for r.c.stopped == "" && !r.g.ended {
		r.c.changed.Wait()
	}
	if r.g.ended {
		return errors.New("it has ended")
	}
	*why = r.c.stopped
	return nil
}

// Meet returns when all are at the step, with the instant at which it begins, or with the reason why that will not be.
func (r Run) Meet(step string, at *int64) error {
	c, g := r.c, r.g
	c.mu.Lock()
	defer c.mu.Unlock()
	g.at = step
	c.waiting++
	c.begin(g)
	for g.at != "" && !g.ended && c.refusal() == "" {
		c.changed.Wait()
	}
	if g.at != "" {
		return errors.New(cmp.Or(c.refusal(), "it has ended"))
	}
	*at = g.begins
	return nil
}

// Tell notes what the generator does.
func (r Run) Tell(s State, _ *bool) error {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	if !r.g.ended {
		r.g.State = s
	}
	return nil
}

// Part is the next one of a file.
type Part struct {
	Name string
	Data []byte
	Last bool
}

// File keeps the next part of a file.
func (r Run) File(p Part, _ *bool) error {
	err := r.c.store(r.g, &p)
	if err != nil {
		r.c.mu.Lock()
		defer r.c.mu.Unlock()
		r.c.fail("the files of generator %d (%s) could not be kept: %v", r.g.Index, r.g.Place, err)
	}
	return err
}

// Done notes that the generator has ended, and why if it failed.
func (r Run) Done(failed string, _ *bool) error {
	c, g := r.c, r.g
	c.mu.Lock()
	defer c.mu.Unlock()
	g.ended, g.Share = true, 1
	g.Text = cmp.Or(failed, "done")
	if failed != "" && (c.apart == "" || !strings.Contains(failed, c.apart)) {
		c.fail("generator %d (%s) failed: %s", g.Index, g.Place, failed)
	} else if c.waiting > 0 {
		c.part(fmt.Sprintf("generator %d (%s) has ended, and others wait for it", g.Index, g.Place))
	}
	return nil
}

// refusal is why no step is met any longer; empty if that is not so.
func (c *Coordinator) refusal() string {
	if c.stopped != "" && !c.soft {
		return c.stopped
	}
	return c.apart
}

// part refuses all steps from now on. The generator that failed says so when it ends, which is the
// better reason.
func (c *Coordinator) part(why string) {
	switch {
	case c.soft:
		c.fail("%s", why)
		return
	case c.failed || c.apart != "":
		return
	}
	c.apart = why
	time.AfterFunc(ending, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fail("%s", why)
	})
	c.changed.Broadcast()
}

// begin lets all begin a step if the last of them, g, waits for it. The instant is far enough
// ahead that all know it in time.
func (c *Coordinator) begin(g *member) {
	for _, o := range c.members {
		switch {
		case o.ended:
			c.part(fmt.Sprintf("generator %d (%s) has ended, and others wait for it at %s", o.Index, o.Place, g.at))
		case o.at != "" && o.at != g.at:
			c.part(fmt.Sprintf("generators are not at the same step: %d waits for %s, and %d for %s", o.Index, o.at, g.Index, g.at))
		}
	}
	if c.apart != "" || c.waiting < c.plan.Generators {
		return
	}
	lead := time.Duration(0)
	if strings.HasPrefix(g.at, "start") {
		lead = 100*time.Millisecond + time.Duration(c.waiting)*time.Millisecond
	}
	at := clock.Wall{}.Now().Add(lead).UnixNano()
	for _, o := range c.members {
		o.at, o.begins = "", at
	}
	c.waiting = 0
	c.changed.Broadcast()
}

// store writes the next part of a file.
func (c *Coordinator) store(g *member, p *Part) (err error) {
	if g.file == nil {
		if c.plan.Keep == nil {
			return errors.New("it sends a file, which nobody asked for")
		}
		if g.file, err = c.plan.Keep(g.Index, p.Name); err != nil {
			return err
		}
	}
	_, err = g.file.Write(p.Data)
	if p.Last || err != nil {
		err = errors.Join(err, g.file.Close())
		g.file = nil
	}
	return err
}

// leaves notes that a generator's connection has ended or is silent.
func (l *connection) leaves(err error) {
	c := l.c
	c.mu.Lock()
	defer c.mu.Unlock()
	g := l.g
	if g == nil {
		return
	}
	if g.file != nil {
		_ = g.file.Close() // it is not whole in any case
		g.file = nil
	}
	c.left++
	if !g.ended {
		g.ended, g.Text = true, "lost"
		c.fail("generator %d of %d (%s) is lost: %s", g.Index, g.Of, g.Place, ended(err))
	} else if c.left == len(c.members) && c.apart != "" {
		c.fail("%s", c.apart)
	}
	c.checkOver()
}

// checkOver ends the wait for generators if none is left.
func (c *Coordinator) checkOver() {
	c.changed.Broadcast()
	if c.left == len(c.members) && (c.started || c.stopped != "") {
		select {
		case <-c.over:
		default:
			close(c.over)
		}
	}
}
