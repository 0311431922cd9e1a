package service

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"syscall"
	"time"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/proxy"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// mostCommands of one client in one run are more than a limiter needs: it goes round in a circle.
const mostCommands = 300

// fewCommands in a row give the others a turn, who may hold what a client asks for again and again.
const fewCommands = 30

// stop is why a client's goroutine has stopped.
type stop uint8

const (
	running  stop = iota
	asking        // it has noted a request in the truth; it goes on by itself
	answered      // the service has answered
	paused        // between two actions of its script
	ended
)

// client sends one request after the other to its instance. One of all goroutines of clients
// runs at a time, and the engine only while all have stopped or wait for the service.
type client struct {
	engine.Client
	engine   *Engine
	instance *instance
	// strategy and child are the instance's when the run begins: requests are sent by other goroutines
	// than the one that starts it again.
	strategy strategies.Strategy
	child    *server.Child   // nil if it was not started here
	ctx      context.Context // of its requests
	cancel   context.CancelFunc
	stops    chan stop
	resume   chan struct{}
	quit     chan struct{} // closed when the run is over
	gone     chan struct{} // closed when the client's goroutine has ended
	at       stop          // where it has stopped
	begun    bool
	asks     bool        // a request of it is under way
	first    chan answer // of a request that was sent before the client has begun
	held     *proxy.Command
	text     string // what is held, for people, and
	store    string // the kind of store that it is for
	sent     bool   // held has taken effect
	flies    bool   // held was sent, and waits for a lock of waitsFor
	waitsFor string
	since    int            // larger, the later it began to wait
	late     *proxy.Command // its reply comes when the instance has given it up
	// commands counts those of the run, and inRow those since another client's step.
	commands, inRow int
	asked           int    // commands of the run before the request under way
	stuck           string // why it does not get on
}

type answer struct {
	decision quota.Decision
	err      error
}

// send sends the client's first request, which is held at its first command: that saves
// the time for which each client would wait when its turn comes.
func (c *client) send() {
	c.first = make(chan answer, 1)
	c.instance.proxy.Hold(true)
	req := quota.Request{Subject: c.engine.nameOf(engine.SubjectOf(c.Script[0].Other)), Policy: &c.engine.Setup.Policy}
	req.Units = c.Script[0].Units
	go func(first chan<- answer) {
		decision, err := c.ask(req)
		first <- answer{decision, err}
	}(c.first)
}

// endingTime is how long the end of a process is waited for that broke a connection.
const endingTime = time.Second

// ask sends a request to the instance. If the process ends, a broken connection may tell it
// before the process does.
func (c *client) ask(req quota.Request) (quota.Decision, error) {
	decision, err := c.strategy.Take(c.ctx, req)
	if c.child != nil && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.ECONNREFUSED)) {
		select {
		case <-c.child.Done():
		case <-c.ctx.Done():
		case <-time.After(endingTime):
		}
	}
	return decision, err
}

// Take implements [strategies.Strategy].
func (c *client) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	c.tell(asking)
	if first := c.first; first != nil {
		c.first = nil
		answer := <-first
		return answer.decision, answer.err
	}
	if req.Subject == manyOthers {
		return c.crowd()
	}
	req.Subject = c.engine.nameOf(req.Subject)
	c.instance.proxy.Hold(true)
	decision, err := c.ask(req)
	if decision.Admitted && c.engine.crowdTook > 0 {
		c.engine.doubted = c.instance
	}
	return decision, err
}

// Close implements [strategies.Strategy].
func (c *client) Close(context.Context) error { return nil }

// follow is what the client's goroutine does.
func (c *client) follow() {
	defer close(c.gone)
	c.Perform(c.ctx, func() bool { return c.halt(paused) })
	c.tell(ended)
}

// halt stops until the engine says so. It reports whether the client goes on.
func (c *client) halt(why stop) bool {
	if !c.tell(why) {
		return false
	}
	select {
	case <-c.resume:
		return true
	case <-c.quit:
		return false
	}
}

// tell tells the engine where the client is, and reports whether the run goes on.
func (c *client) tell(where stop) bool {
	select {
	case c.stops <- where:
		return true
	case <-c.quit:
		return false
	}
}

// String says what the client waits for.
func (c *client) String() string {
	switch {
	case c.stuck != "":
		return c.stuck
	case c.flies:
		return c.Name + " waits for a lock that " + c.waitsFor + " never gives up"
	}
	return c.Name + ": " + c.text
}

func (c *client) over() bool {
	select {
	case <-c.quit:
		return true
	default:
		return false
	}
}

// leave ends a client whose run is over. What its instance still does is not held.
func (c *client) leave() {
	c.instance.proxy.Hold(false)
	close(c.quit)
	defer c.cancel()
	late := time.AfterFunc(c.engine.Setup.Patience, c.cancel)
	defer late.Stop()
	if c.begun {
		<-c.gone
	} else if c.first != nil {
		<-c.first
	}
}

// Snapshot implements [engine.Engine].
func (w *Engine) Snapshot() *engine.Snapshot {
	snapshot := &w.snapshot
	*snapshot = engine.Snapshot{Now: w.now, Actors: snapshot.Actors[:0], Signs: engine.Signs{Stuck: w.failing}}
	asking := 0
	for _, client := range w.callers {
		if client.begun && client.at == running {
			asking++
		}
	}
	for _, client := range w.callers {
		actor := engine.Actor{ID: client.Index, Client: &client.Client, Instance: client.instance.index,
			Members: w.Setup.Members(client.instance.index), Ready: client.ready(), Text: client}
		switch {
		case client.at == ended:
			actor.At = engine.Done
		case !client.begun:
			actor.At = engine.Unborn
		case client.at == paused:
			actor.At = engine.Between
		case client.flies, client.stuck == "" && (client.held == nil || !actor.Ready):
			actor.At = engine.Waiting
		case client.sent:
			actor.At = engine.Answering
			actor.Delays = asking == 1
		default:
			actor.At = engine.Asking
			actor.Fails = true
		}
		snapshot.Actors = append(snapshot.Actors, actor)
	}
	slices.SortStableFunc(snapshot.Actors, func(a, b engine.Actor) int {
		return w.callers[a.ID].inRow/fewCommands - w.callers[b.ID].inRow/fewCommands
	})
	return snapshot
}

// Step implements [engine.Engine]. A client sends the command before which it stands, or
// gets the reply, and goes on to its next command. If no faults may happen, both are one
// step, and the first command of a request is one with the request, if the instance has one
// client: otherwise other requests may come before it, by the same connection.
func (w *Engine) Step(pick engine.Choice) (err error) {
	if !slices.Contains(w.Enabled(nil, false), pick) {
		return engine.ErrMisfit
	}
	w.seen = false
	timeline := &w.Run.Timeline
	w.Run.Truth.At(w.now)
	timeline.Start()
	defer func() {
		if err == nil && w.Setup.Learns {
			w.lengthens(w.longest())
		}
		if err == nil { // otherwise the client may still be writing the line
			timeline.End(w.now.Sub(w.Setup.Begins()), &w.Run.Truth)
			err = w.landed()
		}
		if err == nil {
			err = w.afterFault()
		}
	}()
	if _, actor := pick.Actor(); !actor {
		return w.befallsStore(pick)
	}
	client := w.callers[pick.ID]
	timeline.By(client.Name, codes.RoleClient, client.Index, codes.EventCommand)
	w.counts(client)
	if pick.Kind == engine.StepActor {
		return w.goOn(client)
	}
	w.Inject(pick)
	switch pick.Kind {
	case engine.CrashCall:
		return w.crash(client)
	case engine.LoseReply:
		client.told("", "")
		client.held.Lose()
	case engine.DelayReply:
		client.told("", "")
		client.late = client.held
		client.held.Stall()
	case engine.FailBefore:
		client.told(client.text, "")
		return w.away(client)
	default:
		return engine.ErrMisfit
	}
	return w.wait(client)
}

// counts counts the steps of a client, and those of it in a row.
func (w *Engine) counts(c *client) {
	for _, client := range w.callers {
		if client != c {
			client.inRow = 0
		}
	}
	c.inRow++
}

// goOn takes a client's step.
func (w *Engine) goOn(c *client) error {
	if !c.begun || c.at == paused {
		if !c.begun {
			c.begun = true
			go c.follow()
		} else {
			c.at = running
			c.resume <- struct{}{}
		}
		if err := w.wait(c); err != nil {
			return err
		}
		if w.Setup.HasFaultAt(engine.Asking) || c.shares() || c.held == nil {
			c.engine.Run.Timeline.Write("starts", "", codes.EventStart)
			return nil
		}
	}
	if c.held == nil { // it was answered in a step of another client
		c.told("", "reply")
		c.engine.Run.Timeline.Write("", "", codes.EventReply)
		return w.wait(c)
	}
	if c.sent {
		c.told("", "reply")
		c.engine.Run.Timeline.Write("", "", codes.EventReply)
		c.held.Answer()
		return w.wait(c)
	}
	if err := c.held.Start(); err == nil {
		blocked, err := w.lands(c)
		if err != nil {
			return err
		}
		if blocked {
			w.flies(c)
			return nil
		}
	}
	return w.replied(c, c.text)
}

// replied notes what a command of a client was answered, and has the client go on, unless that is a step of its own.
func (w *Engine) replied(c *client, command string) error {
	reply, err := c.held.Said()
	if err != nil {
		reply = "error: " + err.Error()
	}
	c.told(command, w.plain(reply))
	for _, words := range c.held.Parts() {
		w.Run.Timeline.Stored.Sends(words...)
	}
	w.lacks(c.held)
	c.sent = w.split && err == nil
	if c.sent {
		return nil
	}
	c.held.Answer()
	return w.wait(c)
}

// told puts a command and its reply on the line of the step.
func (c *client) told(command, reply string) {
	if step := c.engine.Run.Timeline.Line; step != nil {
		step.Store = cmp.Or(c.store, redisStore)
		step.Kind = "redis"
		if step.Store == postgresStore {
			step.Kind = "sql"
		}
		c.engine.Run.Timeline.Write(command, reply, "")
	}
}
