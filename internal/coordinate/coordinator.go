package coordinate

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
)

// Plan is what a coordinator knows of a run before its generators join.
type Plan struct {
	Welcome
	// Generators is how many there are.
	Generators int
	// Fingerprint of the plan that all must have.
	Fingerprint string
	// Token that generators have to show; empty if the transport sees to that.
	Token string
	// Wait is how long all have to join.
	Wait time.Duration
	// Keep makes a file for what a generator sends under a name. It is called if the plan
	// says to collect.
	Keep func(index int, name string) (io.WriteCloser, error)
}

// ending is how long generators have to end after they were told to stop.
const ending = 15 * time.Second

// Coordinator serves the generators of one run.
type Coordinator struct {
	plan   Plan
	ctx    context.Context //nolint:containedctx // ends when the run has to, with the reason
	cancel context.CancelCauseFunc
	over   chan struct{} // all generators that joined have ended

	mu      sync.Mutex
	stopped string
	soft    bool // nothing has failed: generators end together
	failed  bool
	apart   string // why no step is met any longer; empty if that is not so
	members map[int]*member
	started bool // all have joined
	waiting int  // at the next step
	left    int  // those that have ended
	conns   map[net.Conn]bool
}

// member is a generator as the coordinator sees it.
type member struct {
	*wire
	Hello
	State
	tell  chan *message // what is to be sent, in order
	at    string        // the step that it waits at; empty for none
	ended bool
	file  io.WriteCloser
}

// State of a generator.
type State struct {
	// Text says what it does, in one line.
	Text string
	// Share of the whole that it has done, 0 to 1.
	Share float64
}

// StoppedError ends all generators of a run.
type StoppedError struct{ Reason string }

func (e *StoppedError) Error() string { return e.Reason }

// NewCoordinator returns one that serves a plan.
func NewCoordinator(p Plan) *Coordinator {
	c := &Coordinator{plan: p, members: map[int]*member{}, conns: map[net.Conn]bool{}, over: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// Run serves until all generators have ended, and closes l. If one is lost, or ctx ends, it
// stops the others, and returns why: a [StoppedError], or the cause of ctx.
func (c *Coordinator) Run(ctx context.Context, l net.Listener) error {
	defer context.AfterFunc(ctx, func() { c.cancel(context.Cause(ctx)) })()
	var serving sync.WaitGroup
	serving.Go(func() { c.accept(l, &serving) })
	late := time.AfterFunc(c.plan.Wait, c.missing)
	select {
	case <-c.over:
	case <-c.ctx.Done():
		c.stop(context.Cause(c.ctx))
		select {
		case <-c.over:
		case <-time.After(ending):
		}
	}
	late.Stop()
	c.mu.Lock()
	for conn := range c.conns {
		_ = conn.Close() // it may have been closed at this moment
	}
	c.mu.Unlock()
	err := l.Close()
	serving.Wait()
	if cause := context.Cause(c.ctx); cause != nil {
		return cause
	}
	return err
}

func (c *Coordinator) accept(l net.Listener, serving *sync.WaitGroup) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			c.mu.Lock()
			c.fail("the coordinator cannot be reached any longer: %v", err)
			c.mu.Unlock()
			return
		}
		c.mu.Lock()
		c.conns[conn] = true
		c.mu.Unlock()
		serving.Go(func() {
			c.serve(newWire(conn))
			_ = conn.Close() // all has been said
			c.mu.Lock()
			delete(c.conns, conn)
			c.mu.Unlock()
		})
	}
}

// fail ends the run. Only the first reason counts. It is called under mu.
func (c *Coordinator) fail(format string, args ...any) {
	why := &StoppedError{fmt.Sprintf(format, args...)}
	c.failed = true
	c.cancel(why)
	if c.soft { // generators wait for what will not be
		c.soft = false
		c.tellAll(&message{Kind: kindStop, Text: why.Reason, Last: true})
	}
}

// Gone says that the process of a generator has ended. Of one that has joined its connection says so.
func (c *Coordinator) Gone(index int, words string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members[index] == nil {
		c.fail("generator %d of %d has ended: %s", index, c.plan.Generators, words)
	}
}

// missing ends the run if not all have joined in time.
func (c *Coordinator) missing() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var who []string
	for i := range c.plan.Generators {
		if c.members[i+1] == nil {
			who = append(who, fmt.Sprint(i+1))
		}
	}
	if len(who) > 0 && !c.started {
		c.fail("generators %s of %d did not join within %v", strings.Join(who, ", "), c.plan.Generators, c.plan.Wait)
	}
}

// stop tells all generators to end. If nothing has failed they do so at the same step.
func (c *Coordinator) stop(why error) {
	_, failed := errors.AsType[*StoppedError](why)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped, c.soft = why.Error(), !failed; errors.Is(why, context.Canceled) {
		c.stopped = "interrupted"
	}
	c.tellAll(&message{Kind: kindStop, Text: c.stopped, Last: !c.soft})
	c.checkOver()
}

// tellAll sends to all that have not ended.
func (c *Coordinator) tellAll(m *message) {
	for _, g := range c.members {
		if !g.ended {
			g.tell <- m
		}
	}
}

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
	why := "its process or its connection has ended"
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		why = fmt.Sprintf("nothing came from it for %v: it is stopped, cut off, or has no processor", Silence)
	}
	if g.file != nil {
		_ = g.file.Close() // it is not whole in any case
		g.file = nil
	}
	g.ended, g.Text = true, "lost"
	c.left++
	c.fail("generator %d of %d (%s) is lost: %s", g.Index, g.Of, g.Place, why)
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

// States are those of all generators; of those that have not joined it says so.
func (c *Coordinator) States() []State {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Repeat([]State{{Text: "has not joined"}}, c.plan.Generators)
	for i, g := range c.members {
		all[i-1] = g.State
	}
	return all
}

// Summary is all states in one line, e.g. "3 generators: round 2 of 8; 1: has not joined", and the least share
// that one has done.
func Summary(states []State) (text string, share float64) {
	counts, share := map[string]int{}, 1.0
	for _, s := range states {
		counts[s.Text]++
		share = min(share, s.Share)
	}
	texts := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	for i, t := range texts {
		unit := ""
		if i == 0 {
			unit = " generators"
		}
		texts[i] = fmt.Sprintf("%d%s: %s", counts[t], unit, t)
	}
	return strings.Join(texts, "; "), share
}
