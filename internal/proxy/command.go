package proxy

import (
	"errors"
	"slices"
	"strings"
)

// state is how far a command has been released.
type state uint8

const (
	waiting state = iota
	sending
	replied
	stalled
	answering
	gone // answered, or its connection is closed
)

// errReleased says that a command cannot be sent.
var errReleased = errors.New("this command is not the first that its connection holds")

// errClosed says that a command has no reply.
var errClosed = errors.New("the connection to the store ended before the reply")

// Command is a command that is held, or a transaction.
type Command struct {
	link   *link
	raw    []byte
	manner manner
	words  [][]byte      // of a command that has no parts; valid until the next one is read
	parts  [][]string    // its words, those of all commands before EXEC, or statements
	got    chan struct{} // closed once there is a reply, or can be none

	// What PostgreSQL answers: acks messages that end a part of it, or all up to ReadyForQuery.
	acks  int
	ready bool

	state  state  // guarded by the proxy's mutex
	behind int    // commands in the queue when it was stalled; likewise
	reply  []byte // written before got is closed, as is
	said   string // the reply in a few words
}

// Parts are the command's words, those of all commands between MULTI and EXEC, or each statement of PostgreSQL.
func (c *Command) Parts() [][]string { return c.parts }

// Reply is what the store has answered, as it was sent, once Send has returned; nil if there was no reply.
func (c *Command) Reply() []byte { return c.reply }

// Door is the one by which the command has come.
func (c *Command) Door() *Door { return c.link.door }

// Store is the kind of store that the command is for: redis or postgres.
func (c *Command) Store() string { return c.link.door.store }

// Session is that of PostgreSQL by which the command is sent, by its process number.
func (c *Command) Session() uint32 { return c.link.session }

// name is the command's first word.
func (c *Command) name() string {
	if len(c.parts) > 0 {
		first, _, _ := strings.Cut(c.parts[0][0], " ")
		return strings.ToUpper(first)
	}
	return strings.ToUpper(string(c.words[0]))
}

// Conn numbers the connection that the command came by, from 1 in order of opening.
func (c *Command) Conn() int { return c.link.number }

// First reports whether the command is the first that its connection holds, and can be released.
func (c *Command) First() bool {
	c.link.toStore.Lock()
	defer c.link.toStore.Unlock()
	c.link.proxy.mu.Lock()
	defer c.link.proxy.mu.Unlock()
	return len(c.link.queue) > 0 && c.link.queue[0] == c
}

// Send has the command take effect and keeps the reply, which it describes in a few
// words. An error says that there is no reply: the connection ended, or the command is
// not the first that its connection holds, or was released before. It waits as long as
// the store does not answer; [Proxy.Cut] ends that.
func (c *Command) Send() (reply string, err error) {
	if err := c.Start(); err != nil {
		return "", err
	}
	<-c.got
	return c.Said()
}

// Start has the command take effect, and does not wait for it. An error says that the command is not the first that its
// connection holds, or was released before.
func (c *Command) Start() error {
	link := c.link
	link.toStore.Lock()
	defer link.toStore.Unlock()
	link.proxy.mu.Lock()
	if c.state != waiting || link.queue[0] != c {
		link.proxy.mu.Unlock()
		return errReleased
	}
	c.state = sending
	link.sent = c
	link.proxy.mu.Unlock()
	link.write(c)
	return nil
}

// Got is closed once there is a reply to a command that was started, or can be none.
func (c *Command) Got() <-chan struct{} { return c.got }

// Said is the reply in a few words, once Got is closed. An error says that there was none.
func (c *Command) Said() (string, error) {
	c.link.proxy.mu.Lock()
	defer c.link.proxy.mu.Unlock()
	if c.reply == nil {
		return "", errClosed
	}
	return c.said, nil
}

// pass gives the service the reply if nothing is held any more.
func (c *Command) pass() {
	c.link.proxy.mu.Lock()
	held := c.link.proxy.on
	c.link.proxy.mu.Unlock()
	if !held {
		c.Answer()
	}
}

// Answer gives the service the reply, after Send, or late after Stall. The next command
// of the connection can be released then.
func (c *Command) Answer() {
	link := c.link
	if !c.enter(answering, replied, stalled) {
		return
	}
	link.give(c.reply)
	link.proxy.mu.Lock()
	if c.state == answering {
		link.leave()
	}
	link.proxy.mu.Unlock()
	link.advance()
}

// enter goes from one of some states to another.
func (c *Command) enter(to state, from ...state) bool {
	c.link.proxy.mu.Lock()
	defer c.link.proxy.mu.Unlock()
	ok := slices.Contains(from, c.state)
	if ok {
		c.state = to
	}
	return ok
}

// Lose closes the connection after Send, so that the service does not get the reply.
func (c *Command) Lose() { c.closeAt(replied) }

// Fail closes the connection before Send: the command has no effect, nor has any behind
// it.
func (c *Command) Fail() { c.closeAt(waiting) }

func (c *Command) closeAt(s state) {
	c.link.proxy.mu.Lock()
	defer c.link.proxy.mu.Unlock()
	if c.state == s {
		c.link.shut()
	}
}

// Stall leaves the service without a reply after Send, and the connection open, until the
// service closes it, or until Answer.
func (c *Command) Stall() {
	c.link.proxy.mu.Lock()
	c.behind = len(c.link.queue)
	c.link.proxy.mu.Unlock()
	if c.enter(stalled, replied) {
		c.link.advance()
	}
}

// Overtaken reports whether the service has sent another command by the connection of a stalled one since.
func (c *Command) Overtaken() bool {
	c.link.proxy.mu.Lock()
	defer c.link.proxy.mu.Unlock()
	return c.state == stalled && len(c.link.queue) > c.behind
}

// manner is how a command is treated.
type manner uint8

const (
	data          manner = iota // held
	passing                     // touches no data
	blocking                    // waits for commands of others, or follows a subscription: passed and counted
	subscribing                 // has replies that belong to no command
	inTransaction               // has no effect before EXEC
	unanswered                  // passes, and has no reply
	begins                      // MULTI
	ends                        // EXEC
	aborts                      // a transaction, if there is one
	refused                     // would take the connection out of the protocol
)
