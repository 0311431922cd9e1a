package coordinate

import (
	"cmp"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
)

// mostTold is more than a generator is told before it says something.
const mostTold = 16

// telling sends what a generator is told: one that takes nothing does not hold up others.
func (g *member) telling() {
	for m := range g.tell {
		_ = g.send(m) // who is lost is found by its silence
	}
}

// serve serves one connection until it ends.
func (c *Coordinator) serve(w *wire) {
	first, err := w.receive()
	if err != nil || first.Kind != kindJoin || first.Hello == nil {
		return
	}
	g := &member{wire: w, Hello: *first.Hello, tell: make(chan *message, mostTold)}
	defer close(g.tell) // it has ended, or was never told anything
	if reason := c.join(g); reason != "" {
		_ = w.send(&message{Kind: kindStop, Text: reason, Last: true}) // it learns that it is refused or that the connection is gone
		return
	}
	for {
		m, err := w.receive()
		if err == nil {
			err = c.take(g, m)
		}
		if err != nil {
			c.lost(g, err)
		}
		if err != nil || m.Kind == kindDone {
			return
		}
	}
}

// join admits a generator, or says why not. What can never become a run ends all, but nobody who
// comes too late does.
func (c *Coordinator) join(g *member) (refused string) {
	c.mu.Lock()
	defer c.mu.Unlock()
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
	go g.telling()
	g.tell <- &message{Kind: kindWelcome, Welcome: &p.Welcome}
	return ""
}

// take carries out a message.
func (c *Coordinator) take(g *member, m *message) (err error) {
	switch m.Kind {
	case kindPing:
		return g.send(&message{Kind: kindPong, Sent: m.Sent, At: clock.Wall{}.Now().UnixNano()})
	case kindFile:
		err := c.store(g, m)
		if err == nil {
			return g.send(&message{Kind: kindTaken})
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fail("the files of generator %d (%s) could not be kept: %v", g.Index, g.Place, err)
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m.Kind {
	case kindProgress:
		g.State = State{m.Text, m.Share}
	case kindReady:
		g.at = m.Text
		c.waiting++
		c.begin(g)
	case kindDone:
		g.ended, g.Share = true, 1
		g.Text = cmp.Or(m.Text, "done")
		c.left++
		if m.Text != "" && (c.apart == "" || !strings.Contains(m.Text, c.apart)) {
			c.fail("generator %d (%s) failed: %s", g.Index, g.Place, m.Text)
		} else if c.waiting > 0 {
			c.part(fmt.Sprintf("generator %d (%s) has ended, and others wait for it", g.Index, g.Place))
		}
		if c.left == len(c.members) && c.apart != "" {
			c.fail("%s", c.apart)
		}
		c.checkOver()
	}
	return nil
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
	c.tellAll(&message{Kind: kindGo, Text: why})
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
	if c.apart != "" {
		g.tell <- &message{Kind: kindGo, Text: c.apart}
		return
	}
	if c.waiting < c.plan.Generators {
		return
	}
	lead := time.Duration(0)
	if strings.HasPrefix(g.at, "start") {
		lead = 100*time.Millisecond + time.Duration(c.waiting)*time.Millisecond
	}
	c.tellAll(&message{Kind: kindGo, Text: g.at, At: clock.Wall{}.Now().Add(lead).UnixNano()})
	for _, o := range c.members {
		o.at = ""
	}
	c.waiting = 0
}

// store writes the next part of a file.
func (c *Coordinator) store(g *member, m *message) (err error) {
	if g.file == nil {
		if c.plan.Keep == nil {
			return errors.New("it sends a file, which nobody asked for")
		}
		if g.file, err = c.plan.Keep(g.Index, m.Text); err != nil {
			return err
		}
	}
	_, err = g.file.Write(m.Data)
	if m.Last || err != nil {
		err = errors.Join(err, g.file.Close())
		g.file = nil
	}
	return err
}

// lost notes that a generator's connection has ended or is silent.
func (c *Coordinator) lost(g *member, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.file != nil {
		_ = g.file.Close() // it is not whole in any case
		g.file = nil
	}
	g.ended, g.Text = true, "lost"
	c.left++
	c.fail("generator %d of %d (%s) is lost: %s", g.Index, g.Of, g.Place, ended(err))
	c.checkOver()
}

// checkOver ends the wait for generators if none is left.
func (c *Coordinator) checkOver() {
	if c.left == len(c.members) && (c.started || c.stopped != "") {
		select {
		case <-c.over:
		default:
			close(c.over)
		}
	}
}
