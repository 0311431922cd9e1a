package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
)

// Door is where an instance reaches one store: a port of 127.0.0.1.
type Door struct {
	proxy    *Proxy
	store    string // the kind of store
	password string // empty for none
	addr     string
	speaks   func(*link) dialect

	// What follows is guarded by the proxy's mutex.
	listener net.Listener // nil while connections are refused
	barred   int          // commands and connections that were refused for lack of a password
	insists  bool         // a client wanted TLS and left
}

// dialect is what a service and its store say to each other by one connection.
type dialect interface {
	// open connects to the store, and answers what the service says before its first command.
	open(ctx context.Context) (store net.Conn, err error)
	// next reads the next command of the service, which is valid until the next call.
	next() (*Command, error)
	// sends is told of a command before it is written to the store.
	sends(*Command)
	// reply reads what the store sends next. What is pushed answers no command.
	reply() (raw []byte, pushed bool, err error)
	// text is the reply that was read last, in a few words.
	text(raw []byte) string
	// fails reports whether a reply is an error.
	fails(raw []byte) bool
	// foul reports whether an error says that what was read is not of the protocol.
	foul(err error) bool
}

// open opens a door on a free port.
func (p *Proxy) open(store, password string, speaks func(*link) dialect) (*Door, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for a service: %w", err)
	}
	door := &Door{proxy: p, store: store, password: password, addr: listener.Addr().String(), speaks: speaks,
		listener: listener}
	p.mu.Lock()
	p.doors = append(p.doors, door)
	p.mu.Unlock()
	p.running.Go(func() { door.accept(listener) })
	return door, nil
}

// title is what the store is called.
func (d *Door) title() string {
	if d.store == "redis" {
		return "Redis"
	}
	return "PostgreSQL"
}

// Addr is where the service reaches the store: 127.0.0.1 and a port.
func (d *Door) Addr() string { return d.addr }

func (d *Door) accept(listener net.Listener) {
	proxy := d.proxy
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		proxy.mu.Lock()
		switch {
		case err != nil && proxy.foul == nil: // too few file descriptors: the service sees an outage that no fault names
			proxy.foul = fmt.Errorf("accept a connection of the service: %w", err)
			proxy.signal()
		case err == nil && (proxy.links == nil || d.listener == nil):
			_ = conn.Close()
		case err == nil:
			proxy.opened++
			l := &link{proxy: proxy, door: d, number: proxy.opened, service: conn}
			l.dialect = d.speaks(l)
			proxy.links[l] = struct{}{}
			proxy.signal()
			proxy.running.Go(l.serve)
		}
		proxy.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Refuse says whether connections of the service are refused, as by a store that is away, and ends those that there are
// if so.
func (d *Door) Refuse(on bool) {
	proxy := d.proxy
	proxy.mu.Lock()
	defer proxy.mu.Unlock()
	switch {
	case proxy.links == nil || on == (d.listener == nil):
	case on:
		_ = d.listener.Close() // which has accepted all that it will
		d.listener = nil
		for link := range proxy.links {
			if link.door == d {
				link.shut()
			}
		}
	default:
		d.listenAgain()
	}
}

// listenAgain accepts connections at the address that the service knows.
func (d *Door) listenAgain() {
	proxy := d.proxy
	listener, err := net.Listen("tcp", d.addr)
	if err != nil {
		proxy.foul = cmp.Or(proxy.foul, fmt.Errorf("listen for a service again: %w", err))
		proxy.signal()
		return
	}
	d.listener = listener
	proxy.running.Go(func() { d.accept(listener) })
}

// Barred counts the commands and connections that were refused for lack of the password.
func (d *Door) Barred() int {
	d.proxy.mu.Lock()
	defer d.proxy.mu.Unlock()
	return d.barred
}

// Insists reports whether a client has left because there is no TLS here.
func (d *Door) Insists() bool {
	d.proxy.mu.Lock()
	defer d.proxy.mu.Unlock()
	return d.insists
}
