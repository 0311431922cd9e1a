package proxy

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/fakeredis/resp"
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
var errClosed = errors.New("the connection to Redis ended before the reply")

// Command is a command that is held, or a transaction.
type Command struct {
	link   *link
	raw    []byte
	manner manner
	parts  [][]string    // its words, or those of all commands before EXEC
	got    chan struct{} // closed once there is a reply, or can be none

	state  state  // guarded by the proxy's mutex
	behind int    // commands in the queue when it was stalled; likewise
	reply  []byte // written before got is closed
}

// Parts are the command's words, or those of all commands between MULTI and EXEC.
func (c *Command) Parts() [][]string { return c.parts }

// Reply is what Redis has answered, as it was sent, once Send has returned; nil if there was no reply.
func (c *Command) Reply() []byte { return c.reply }

// Conn numbers the connection that the command came by, from 1 in order of opening.
func (c *Command) Conn() int { return c.link.number }

// First reports whether the command is the first that its connection holds, and can be released.
func (c *Command) First() bool {
	c.link.toRedis.Lock()
	defer c.link.toRedis.Unlock()
	c.link.proxy.mu.Lock()
	defer c.link.proxy.mu.Unlock()
	return len(c.link.queue) > 0 && c.link.queue[0] == c
}

// Send has the command take effect and keeps the reply, which it describes in a few
// words. An error says that there is no reply: the connection ended, or the command is
// not the first that its connection holds, or was released before. It waits as long as
// Redis does not answer; [Proxy.Cut] ends that.
func (c *Command) Send() (reply string, err error) {
	link := c.link
	link.toRedis.Lock()
	link.proxy.mu.Lock()
	if c.state != waiting || link.queue[0] != c {
		link.proxy.mu.Unlock()
		link.toRedis.Unlock()
		return "", errReleased
	}
	c.state, link.sent = sending, c
	link.proxy.mu.Unlock()
	link.write(c.raw)
	link.toRedis.Unlock()

	<-c.got
	link.proxy.mu.Lock()
	answered := c.reply != nil
	held := link.proxy.on
	link.proxy.mu.Unlock()
	if !answered {
		return "", errClosed
	}
	if !held {
		c.Answer()
	}
	return resp.Text(c.reply), nil
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
	begins                      // MULTI
	ends                        // EXEC
	aborts                      // a transaction, if there is one
	refused                     // would take the connection out of the protocol
)

// manners of the commands that are not data.
var manners = map[string]manner{}

// refusal is what Redis gets instead of a refused command: one that it does not know, so
// that the error comes in its order, and aborts a transaction.
var refusal = encoded([][]byte{[]byte("THE-PROXY-REFUSES-THIS-COMMAND")})

func init() {
	for m, names := range map[manner]string{
		passing: "hello auth client select ping echo info command config role readonly readwrite asking latency memory " +
			"script function acl module slowlog cluster debug unwatch pubsub lolwut lastsave save bgsave bgrewriteaof " +
			"replicaof slaveof failover shutdown",
		blocking:    "blpop brpop brpoplpush blmove blmpop bzpopmin bzpopmax bzmpop wait waitaof",
		subscribing: "subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe",
		begins:      "multi", ends: "exec", aborts: "discard reset quit", refused: "monitor psync sync replconf",
	} {
		for _, name := range strings.Fields(names) {
			manners[name] = m
		}
	}
}

// mannerOf is how a command is treated outside of a transaction.
func mannerOf(args [][]byte) manner {
	name := strings.ToLower(string(args[0][:min(len(args[0]), 16)])) // longer than any that is listed
	has := func(datas [][]byte, words ...string) bool {
		return slices.ContainsFunc(datas, func(data []byte) bool {
			return slices.ContainsFunc(words, func(text string) bool { return bytes.EqualFold(data, []byte(text)) })
		})
	}
	second := args[1:min(len(args), 2)]
	switch manner := manners[name]; {
	case (manner == begins || manner == ends) && len(args) > 1: // an error
		return passing
	case name == "client" && has(second, "reply"):
		return subscribing
	case (name == "script" || name == "function") && has(second, "flush", "delete", "restore"):
		return data
	case (name == "xread" || name == "xreadgroup") && has(args, "block"):
		return blocking
	default:
		return manner
	}
}
