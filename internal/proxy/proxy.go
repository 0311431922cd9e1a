// Package proxy stands between one instance of a service, in any language, and its stores:
// a proxy that holds each command until it is released, so that a search can choose the
// order in which the commands of several instances take effect. The way to each store is a [Door].
//
// Of Redis, a step is one command, or a whole transaction: MULTI and what is queued after it pass,
// since only EXEC has an effect, and EXEC is held. WATCH is a step, because it reads.
// The commands of a pipeline are steps one after the other. What touches no data passes
// at once (HELLO, AUTH, CLIENT, SELECT, PING, SCRIPT LOAD ...). What waits by itself
// passes too, and is named: blocking commands, subscriptions, and everything on a
// connection after a subscription. MONITOR and replication are refused. What is sent and
// answered is passed on byte by byte, in RESP2 and in RESP3.
//
// Of PostgreSQL, a step is what a client sends until it lets the server answer: a simple query, or the
// messages up to a Sync or a Flush that have a statement executed. BEGIN, COMMIT and ROLLBACK are steps.
// What has no effect on data passes: SET, SHOW, RESET, DISCARD, DEALLOCATE, and SELECT 1, by which pools
// look if a connection lives. COPY and LISTEN pass and are named.
//
// The proxy's connections to stores are logged in. A service logs in to the proxy by a password of the proxy's own,
// where there is one: other programs of the machine can reach its ports, too.
package proxy

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Proxy stands between one instance of a service and its stores. All methods may be called
// from any goroutine.
type Proxy struct {
	changed chan struct{}
	ctx     context.Context // of what the proxy does by itself
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	room   *sync.Cond // there may be, for more commands in a queue
	on     bool
	links  map[*link]struct{} // nil once the proxy is closed
	opened int
	held   []*Command
	passed []string
	foul   error
	doors  []*Door
	left   []uint32 // sessions of PostgreSQL whose connections were closed
}

// New is a proxy without doors, which passes everything at once.
func New() *Proxy {
	proxy := &Proxy{changed: make(chan struct{}, 1), links: map[*link]struct{}{}}
	proxy.room = sync.NewCond(&proxy.mu)
	proxy.ctx, proxy.cancel = context.WithCancel(context.Background())
	return proxy
}

// Hold says whether commands are held from now on. If not, what is held now takes effect
// and is answered, in the order of each connection, and stalled replies arrive.
func (p *Proxy) Hold(on bool) {
	p.mu.Lock()
	p.on = on
	var first []*Command
	if !on {
		for link := range p.links {
			if len(link.queue) > 0 {
				first = append(first, link.queue[0])
			}
		}
	}
	p.mu.Unlock()
	for _, command := range first {
		command.Answer()
		command.link.advance()
	}
}

// Held lists the commands that wait for Send or Answer, in order of arrival. Of each
// connection only the first can be released. A command stays here when the service
// closes its connection, because it is under way then and may still take effect; nobody
// reads its reply. A stalled command is not listed, nor is any behind it.
func (p *Proxy) Held() []*Command {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.held), func(command *Command) bool {
		return command.link.queue[0].state == stalled
	})
}

// Changed receives if something was held, or a connection was opened or closed, since it
// received last. Its capacity is 1.
func (p *Proxy) Changed() <-chan struct{} { return p.changed }

func (p *Proxy) signal() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// Cut closes all connections, as the death of the instance does: end the instance first,
// so that it opens no others. What is held has no effect.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
}

func (p *Proxy) cut() {
	for link := range p.links {
		link.shut()
	}
}

// Drain lets everything pass that an instance had sent before it ended, and returns once its
// connections are closed, or after patience. End the instance first.
func (p *Proxy) Drain(patience time.Duration) {
	p.Hold(false)
	late := time.After(patience)
	for {
		p.mu.Lock()
		open := len(p.links)
		p.mu.Unlock()
		if open == 0 {
			return
		}
		select {
		case <-p.changed:
		case <-late:
			return
		}
	}
}

// Foul says what has come, from either side, that is not the protocol of the store, or nil. That connection
// has been closed, and nothing may be claimed.
func (p *Proxy) Foul() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.foul
}

// Passed names the commands of data that have passed while commands were held: of Redis blocking
// ones, subscriptions, and what followed a subscription on its connection; of PostgreSQL COPY and LISTEN.
func (p *Proxy) Passed() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.passed)
}

// Left are the sessions of PostgreSQL, by their process numbers, whose connections were closed since it was asked last.
// The server ends them by itself, and takes a moment for it.
func (p *Proxy) Left() []uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.left
	p.left = nil
	return left
}

// Close closes all ports and connections, and waits until nothing is left of them.
func (p *Proxy) Close() error {
	p.cancel()
	p.mu.Lock()
	var errs []error
	for _, door := range p.doors {
		if door.listener != nil {
			errs = append(errs, door.listener.Close())
			door.listener = nil
		}
	}
	p.cut()
	p.links = nil
	p.mu.Unlock()
	p.running.Wait()
	return errors.Join(errs...)
}
