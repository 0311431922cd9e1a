package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/quotabench/quotabench/internal/kit/clock"
)

// plan is what a coordinator knows of a run before its generators join.
type plan struct {
	welcome
	// Generators is how many there are.
	Generators int
	// Fingerprint of the plan that all must have.
	Fingerprint string
	// Wait is how long all have to join.
	Wait time.Duration
	// Keep makes a file for what a generator sends under a name.
	Keep func(index int, name string) (io.WriteCloser, error)
}

// ending is how long generators have to end after they were told to stop.
const ending = 15 * time.Second

// coordinator serves the generators of one run.
type coordinator struct {
	plan   plan
	conn   *nats.Conn
	ctx    context.Context // ends when the run has to, with the reason
	cancel context.CancelCauseFunc
	over   chan struct{} // all generators that joined have ended or are lost

	mu      sync.Mutex
	stopped string
	soft    bool // nothing has failed: generators end together
	failed  bool
	apart   string // why no step is met any longer; empty if steps are met
	members map[int]*generator
	started bool // all have joined
	waiting int  // at the next step
	left    int  // those that have ended or are lost
}

// generator is one of them as the coordinator sees it.
type generator struct {
	hello
	progress
	at    string    // the step that it waits at; empty for none
	asked *nats.Msg // its call, which is answered once all are there
	ended bool
	file  io.WriteCloser
}

// listen serves a plan at a meeting. [coordinator.run] waits for the end of the run.
func listen(m meeting, p plan) (*coordinator, error) {
	c := &coordinator{plan: p, members: map[int]*generator{}, over: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	var err error
	c.conn, err = m.connect()
	if err != nil {
		return nil, err
	}
	// Two subscriptions have a goroutine each: a file that is being kept delays no reading of the clock.
	_, err = subscribe(c.conn, m.join(), p.Generators, c.take)
	if err == nil {
		_, err = subscribe(c.conn, m.clock(), p.Generators, tellTime)
	}
	if err == nil {
		err = c.alone(m)
	}
	if err != nil {
		c.conn.Close()
		return nil, err
	}
	c.conn.SetClosedHandler(func(*nats.Conn) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fail("the server of NATS is lost")
	})
	return c, nil
}

// alone refuses a name that another coordinator serves.
func (c *coordinator) alone(m meeting) error {
	inbox := nats.NewInbox()
	answers, err := c.conn.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	if err := c.conn.PublishRequest(m.clock(), inbox, []byte("{}")); err != nil {
		return err
	}
	if _, err := answers.NextMsg(patience); err != nil {
		return fmt.Errorf("the server of NATS does not answer: %w", err) // its own answer is the first
	}
	if _, err := answers.NextMsg(otherAnswers); err == nil {
		return fmt.Errorf("another run meets at %s: give a name of its own",
			strings.TrimSuffix(strings.TrimPrefix(m.root, "quotabench."), "."))
	}
	return answers.Unsubscribe()
}

// otherAnswers is how long a second coordinator would take to answer.
const otherAnswers = 200 * time.Millisecond

// run waits until all generators have ended. If one is lost, or ctx ends, it stops the others, and returns why: a
// [stoppedError], or the cause of ctx.
func (c *coordinator) run(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { c.cancel(context.Cause(ctx)) })()
	late := time.AfterFunc(c.plan.Wait, c.missing)
	defer late.Stop()
	select {
	case <-c.over:
	case <-c.ctx.Done():
		c.stop(context.Cause(c.ctx))
		select {
		case <-c.over:
		case <-time.After(ending):
		}
	}
	why := context.Cause(c.ctx)
	c.conn.SetClosedHandler(nil)
	_ = c.conn.FlushTimeout(patience) // the last answers
	c.conn.Close()
	return why
}

func tellTime(msg *nats.Msg) { respond(msg, "", clock.Wall{}.Now().UnixNano()) }

// take answers a call.
func (c *coordinator) take(msg *nats.Msg) {
	var q received
	if err := json.Unmarshal(msg.Data, &q); err != nil {
		respond(msg, "the call cannot be read: all processes need the same version of the program", nil)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.Call == callJoin {
		c.admit(msg, q.Body)
		return
	}
	generator := c.members[q.Index]
	if generator == nil || generator.ended {
		respond(msg, cmp.Or(c.stopped, "it has ended"), nil)
		return
	}
	switch q.Call {
	case callMeet:
		c.meet(msg, generator, q.Body)
	case callTell:
		_ = json.Unmarshal(q.Body, &generator.progress) // it is shown, and nothing else
	case callFile:
		err := c.store(generator, q.Body)
		if err != nil {
			c.fail("the files of generator %d (%s) could not be kept: %v", generator.Index, generator.Place, err)
			respond(msg, err.Error(), nil)
			return
		}
		respond(msg, "", true)
	case callDone:
		var failed string
		_ = json.Unmarshal(q.Body, &failed) // an empty one is no failure
		respond(msg, "", true)              // before the last one ends the run, and with it the connection
		c.done(generator, failed)
	}
}

// admit lets a generator join, or says why not.
func (c *coordinator) admit(msg *nats.Msg, body []byte) {
	g := new(generator)
	if err := json.Unmarshal(body, &g.hello); err != nil {
		respond(msg, "it cannot be read who joins", nil)
		return
	}
	if refused := c.join(g); refused != "" {
		respond(msg, refused, nil)
		return
	}
	respond(msg, "", c.plan.welcome)
	go c.watch(g)
}

// join admits a generator, or says why not. What can never become a run ends all, but nobody who comes too late does.
func (c *coordinator) join(g *generator) (refused string) {
	plan := &c.plan
	switch other := c.members[g.Index]; {
	case c.stopped != "":
		return c.stopped
	case g.Of != plan.Generators || g.Index < 1 || g.Index > g.Of:
		refused = fmt.Sprintf("generator %d of %d (%s) does not fit: the coordinator expects %d", g.Index, g.Of, g.Place,
			plan.Generators)
	case other != nil:
		refused = fmt.Sprintf("there are two generators %d of %d: %s and %s", g.Index, g.Of, other.Place, g.Place)
	case g.Fingerprint != plan.Fingerprint:
		refused = fmt.Sprintf("generator %d (%s) has another plan: its fingerprint is %s, and not %s; start all with "+
			"the same settings and the same version", g.Index, g.Place, g.Fingerprint, plan.Fingerprint)
	}
	if refused != "" {
		if !c.started {
			c.fail("%s", refused)
		}
		return refused
	}
	g.Text = "waits for the others"
	c.members[g.Index] = g
	c.started = len(c.members) == plan.Generators
	return ""
}

// watch asks a generator for a word now and then, until it has ended. Without an answer it is lost. A question that
// was under way when the generator's connection ended is never answered, and the next one tells that it is gone.
func (c *coordinator) watch(g *generator) {
	ping, _ := json.Marshal(message{Kind: sentPing})
	heard := clock.Nano()
	for {
		_, err := c.conn.Request(g.Inbox, ping, beat)
		if err == nil {
			heard = clock.Nano()
		}
		if errors.Is(err, nats.ErrTimeout) && clock.Nano()-heard < int64(silence) {
			continue
		}
		c.mu.Lock()
		over := g.ended
		if err != nil && !over {
			c.lose(g, err)
			over = true
		}
		c.mu.Unlock()
		if over {
			return
		}
		select {
		case <-c.over:
			return
		case <-time.After(beat):
		}
	}
}

// lose notes that a generator is lost.
func (c *coordinator) lose(g *generator, err error) {
	if g.file != nil {
		_ = g.file.Close() // it is not whole in any case
		g.file = nil
	}
	g.ended = true
	g.Text = "lost"
	c.left++
	c.fail("generator %d of %d (%s) is lost: %s", g.Index, g.Of, g.Place, ended(err))
	c.checkOver()
}

// done notes that a generator has ended, and why if it failed.
func (c *coordinator) done(g *generator, failed string) {
	g.ended = true
	g.Share = 1
	g.Text = cmp.Or(failed, "done")
	c.left++
	switch {
	case failed != "" && (c.apart == "" || !strings.Contains(failed, c.apart)):
		c.fail("generator %d (%s) failed: %s", g.Index, g.Place, failed)
	case c.left == len(c.members) && c.apart != "":
		c.fail("%s", c.apart)
	case c.waiting > 0:
		c.part(fmt.Sprintf("generator %d (%s) has ended, and others wait for it", g.Index, g.Place))
	}
	c.checkOver()
}

// fail ends the run. Only the first reason counts. It is called under mu.
func (c *coordinator) fail(format string, args ...any) {
	c.failed = true
	c.cancel(&stoppedError{fmt.Sprintf(format, args...)})
	c.soft = false // generators wait for what will not be
	c.refuse()
}

// missing ends the run if not all have joined in time.
func (c *coordinator) missing() {
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
func (c *coordinator) stop(why error) {
	_, failed := errors.AsType[*stoppedError](why)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = why.Error()
	if errors.Is(why, context.Canceled) {
		c.stopped = "interrupted"
	}
	c.soft = !failed
	data, _ := json.Marshal(message{Kind: sentStop, Text: c.stopped})
	for _, generator := range c.members {
		if !generator.ended {
			_ = c.conn.Publish(generator.Inbox, data) // a connection that is gone says so by itself
		}
	}
	c.refuse()
	c.checkOver()
}

// refusal is why no step is met any longer; empty if steps are met.
func (c *coordinator) refusal() string {
	if c.stopped != "" && !c.soft {
		return c.stopped
	}
	return c.apart
}

// refuse answers those that wait for a step that will not be met.
func (c *coordinator) refuse() {
	why := c.refusal()
	if why == "" {
		return
	}
	for _, generator := range c.members {
		if generator.asked != nil {
			respond(generator.asked, why, nil)
			generator.asked = nil
		}
	}
}

// part refuses all steps from now on. The generator that failed says so when it ends, which is the better reason.
func (c *coordinator) part(why string) {
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
	c.refuse()
}

// meet answers all that wait for a step once the last of them has asked, with a moment so far ahead that all know it in
// time.
func (c *coordinator) meet(msg *nats.Msg, g *generator, body []byte) {
	if err := json.Unmarshal(body, &g.at); err != nil {
		respond(msg, "it cannot be read which step begins", nil)
		return
	}
	g.asked = msg
	c.waiting++
	for _, generator := range c.members {
		switch {
		case generator.ended:
			c.part(fmt.Sprintf("generator %d (%s) has ended, and others wait for it at %s", generator.Index, generator.Place,
				g.at))
		case generator.asked != nil && generator.at != g.at:
			c.part(fmt.Sprintf("generators are not at the same step: %d waits for %s, and %d for %s", generator.Index,
				generator.at, g.Index, g.at))
		}
	}
	c.refuse()
	if c.refusal() != "" || c.waiting < c.plan.Generators {
		return
	}
	lead := time.Duration(0)
	if strings.HasPrefix(g.at, "start") {
		lead = 100*time.Millisecond + time.Duration(c.waiting)*time.Millisecond
	}
	at := clock.Wall{}.Now().Add(lead).UnixNano()
	for _, generator := range c.members {
		respond(generator.asked, "", at)
		generator.asked = nil
		generator.at = ""
	}
	c.waiting = 0
}

// store writes the next part of a file.
func (c *coordinator) store(g *generator, body []byte) (err error) {
	var p part
	if err := json.Unmarshal(body, &p); err != nil {
		return err
	}
	if g.file == nil {
		g.file, err = c.plan.Keep(g.Index, p.Name)
		if err != nil {
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

// checkOver ends the wait for generators if none is left.
func (c *coordinator) checkOver() {
	if c.left < len(c.members) || !c.started && c.stopped == "" {
		return
	}
	select {
	case <-c.over:
	default:
		close(c.over)
	}
}

// states are those of all generators; of those that have not joined it says so.
func (c *coordinator) states() []progress {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Repeat([]progress{{Text: "has not joined"}}, c.plan.Generators)
	for i, generator := range c.members {
		all[i-1] = generator.progress
	}
	return all
}

// summary is all states in one line, e.g. "3 generators: round 2 of 8; 1: has not joined", and the least share that one
// has done.
func summary(states []progress) (text string, share float64) {
	counts := map[string]int{}
	share = 1
	for _, progress := range states {
		counts[progress.Text]++
		share = min(share, progress.Share)
	}
	texts := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b))
	})
	for i, text := range texts {
		unit := ""
		if i == 0 {
			unit = " generators"
		}
		texts[i] = fmt.Sprintf("%d%s: %s", counts[text], unit, text)
	}
	return strings.Join(texts, "; "), share
}
