// Package hold stands between one instance of a service, in any language, and its Redis:
// a proxy that holds each command until it is released, so that a search can choose the
// order in which the commands of several instances take effect.
//
// A step is one command, or a whole transaction: MULTI and what is queued after it pass,
// since only EXEC has an effect, and EXEC is held. WATCH is a step, because it reads.
// The commands of a pipeline are steps one after the other. What touches no data passes
// at once (HELLO, AUTH, CLIENT, SELECT, PING, SCRIPT LOAD ...). What waits by itself
// passes too, and is counted: blocking commands, subscriptions, and everything on a
// connection after a subscription. MONITOR and replication are refused.
//
// What is sent and answered is passed on byte by byte, in RESP2 and in RESP3.
package hold

import (
	"context"
	"net"
)

// Proxy stands between one instance of a service and Redis. All methods may be called
// from any goroutine.
type Proxy struct {
	changed chan struct{}
}

// Listen opens a proxy on a free port of 127.0.0.1 that passes everything at once. dial
// connects to Redis, once for each connection of the service; if it fails, that
// connection is closed.
func Listen(dial func(context.Context) (net.Conn, error)) (*Proxy, error) {
	return &Proxy{changed: make(chan struct{}, 1)}, nil
}

// Addr is where the service reaches Redis: 127.0.0.1 and a port.
func (p *Proxy) Addr() string { return "" }

// Hold says whether commands are held from now on. If not, what is held now takes effect
// and is answered, in its order, and stalled replies arrive too.
func (p *Proxy) Hold(on bool) {}

// Held lists the commands that wait for Send or Answer, in order of arrival. Of each
// connection only the first can be released. A command stays here when the service
// closes its connection, because it is under way then and may still take effect; nobody
// reads its reply. A stalled command is not listed, nor is any behind it.
func (p *Proxy) Held() []*Command { return nil }

// Changed receives if something was held, or a connection was opened or closed, since it
// received last. Its capacity is 1.
func (p *Proxy) Changed() <-chan struct{} { return p.changed }

// Cut closes all connections, as the death of the instance does: end the instance first,
// so that it opens no others. What is held has no effect.
func (p *Proxy) Cut() {}

// Foul says which bytes have come, from either side, that are not RESP, or nil. The
// connection has been closed, and nothing may be claimed.
func (p *Proxy) Foul() error { return nil }

// Passed counts the commands of data that have passed while commands were held: blocking
// ones, subscriptions, and what followed a subscription on its connection.
func (p *Proxy) Passed() int { return 0 }

// Close closes all connections and the port.
func (p *Proxy) Close() error { return nil }

// Command is a command that is held, or a transaction.
type Command struct{}

// Parts are the command's words, or those of all commands between MULTI and EXEC.
func (c *Command) Parts() [][]string { return nil }

// Conn numbers the connection that the command came by, from 1 in order of opening.
func (c *Command) Conn() int { return 0 }

// Send has the command take effect and keeps the reply, which it describes in a few
// words. An error says that there is no reply: the connection ended, or the command is
// not the first that its connection holds, or was released before.
func (c *Command) Send() (reply string, err error) { return "", nil }

// Answer gives the service the reply, after Send, or late after Stall. The next command
// of the connection can be released then.
func (c *Command) Answer() {}

// Lose closes the connection after Send, so that the service does not get the reply.
func (c *Command) Lose() {}

// Fail closes the connection before Send: the command has no effect, nor has any behind
// it.
func (c *Command) Fail() {}

// Stall leaves the service without a reply after Send, and the connection open, until the
// service closes it, or until Answer.
func (c *Command) Stall() {}
