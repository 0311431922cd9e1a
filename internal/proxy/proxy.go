// Package proxy stands between one instance of a service, in any language, and its Redis:
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
//
// The proxy's connections to Redis are logged in. A service logs in to the proxy by a password of the proxy's own,
// where there is one: other programs of the machine can reach its port, too.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// Proxy stands between one instance of a service and Redis. All methods may be called
// from any goroutine.
type Proxy struct {
	dial     func(context.Context) (net.Conn, error)
	password string // empty for none
	addr     string
	changed  chan struct{}
	ctx      context.Context // of what the proxy does by itself
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while connections are refused
	room     *sync.Cond   // there may be, for more commands in a queue
	on       bool
	links    map[*link]struct{} // nil once the proxy is closed
	opened   int
	held     []*Command
	passed   int
	foul     error
	barred   int // commands that were refused for lack of a password
}

// Listen opens a proxy on a free port of 127.0.0.1 that passes everything at once. dial
// connects to Redis, once for each connection of the service; if it fails, that
// connection is closed. A connection of the service logs in by the password, unless that is empty.
func Listen(password string, dial func(context.Context) (net.Conn, error)) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for a service: %w", err)
	}
	proxy := &Proxy{dial: dial, password: password, addr: listener.Addr().String(), listener: listener,
		changed: make(chan struct{}, 1), links: map[*link]struct{}{}}
	proxy.room = sync.NewCond(&proxy.mu)
	proxy.ctx, proxy.cancel = context.WithCancel(context.Background())
	proxy.running.Go(func() { proxy.accept(listener) })
	return proxy, nil
}

// Addr is where the service reaches Redis: 127.0.0.1 and a port.
func (p *Proxy) Addr() string { return p.addr }

func (p *Proxy) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		p.mu.Lock()
		switch {
		case err != nil && p.foul == nil: // too few file descriptors: the service sees an outage that no fault names
			p.foul = fmt.Errorf("accept a connection of the service: %w", err)
			p.signal()
		case err == nil && (p.links == nil || p.listener == nil):
			_ = conn.Close()
		case err == nil:
			p.opened++
			l := &link{proxy: p, number: p.opened, service: conn}
			p.links[l] = struct{}{}
			p.signal()
			p.running.Go(l.serve)
		}
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
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

// Refuse says whether connections of the service are refused, as by a Redis that is away, and ends those that there are
// if so.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.links == nil || on == (p.listener == nil):
	case on:
		_ = p.listener.Close() // which has accepted all that it will
		p.listener = nil
		p.cut()
	default:
		p.listenAgain()
	}
}

// listenAgain accepts connections at the address that the service knows.
func (p *Proxy) listenAgain() {
	listener, err := net.Listen("tcp", p.addr)
	if err != nil {
		p.foul = cmp.Or(p.foul, fmt.Errorf("listen for a service again: %w", err))
		p.signal()
		return
	}
	p.listener = listener
	p.running.Go(func() { p.accept(listener) })
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

// Foul says what has come, from either side, that is not RESP, or nil. That connection has
// been closed, and nothing may be claimed.
func (p *Proxy) Foul() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.foul
}

// Passed counts the commands of data that have passed while commands were held: blocking
// ones, subscriptions, and what followed a subscription on its connection.
func (p *Proxy) Passed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed
}

// Barred counts the commands that were refused because their connection had not logged in.
func (p *Proxy) Barred() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.barred
}

// Close closes the port and all connections, and waits until nothing is left of them.
func (p *Proxy) Close() error {
	p.cancel()
	p.mu.Lock()
	var err error
	if p.listener != nil {
		err = p.listener.Close()
	}
	p.cut()
	p.links = nil
	p.mu.Unlock()
	p.running.Wait()
	return err
}
