package proxy

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/quotabench/quotabench/internal/fakeredis/resp"
)

// maxAhead is how many bytes a service may send ahead of what is released, per
// connection, and of how many a transaction remembers the text. least is what each command
// counts for besides.
const maxAhead, least = 16 << 20, 1 << 10

// link is one connection of the service, and its own one to the store.
//
// At most one command is held back at the store's side, the first of the queue: what is
// behind it is sent once it has been answered. So the store owes the replies that are passed
// on first, in their order, and then that of the command that was released.
type link struct {
	proxy   *Proxy
	door    *Door
	dialect dialect
	number  int
	service net.Conn

	// Each is held while something is written, and taken before the proxy's mutex.
	toStore, toService sync.Mutex

	// What follows is guarded by the proxy's mutex.
	store   net.Conn
	session uint32 // of PostgreSQL, by its process number; 0 for none
	queue   []*Command
	ahead   int      // bytes in the queue
	awaited []manner // of what was passed, the replies that the store owes
	sent    *Command // whose reply comes after those
	opaque  bool     // a subscription was passed: replies belong to nothing that was sent
	ended   bool     // the service sends nothing more
	closed  bool
}

// serve connects to the store, and passes on until both sides have ended.
func (l *link) serve() {
	store, err := l.dialect.open(l.proxy.ctx)
	l.proxy.mu.Lock()
	if err != nil {
		l.shut()
	}
	if l.closed {
		if err == nil {
			_ = store.Close()
		}
		l.proxy.mu.Unlock()
		return
	}
	l.store = store
	l.proxy.mu.Unlock()
	l.proxy.running.Go(l.replies)
	l.commands()
}

// commands reads what the service sends until it ends.
func (l *link) commands() {
	for {
		command, err := l.dialect.next()
		if err != nil {
			l.end(service, err)
			return
		}
		l.arrive(command)
	}
}

// replies reads what the store sends until it ends.
func (l *link) replies() {
	for {
		raw, pushed, err := l.dialect.reply()
		if err != nil {
			l.end(l.door.title(), err)
			return
		}
		command, kept := l.keep(raw, pushed)
		if kept {
			if command != nil {
				command.pass()
			}
			continue
		}
		l.give(raw)
		l.proxy.mu.Lock()
		if !pushed && !l.opaque && len(l.awaited) > 0 {
			l.awaited = slices.Delete(l.awaited, 0, 1)
		}
		l.settle()
		l.proxy.mu.Unlock()
	}
}

// service is the side that is no store.
const service = "the service"

// end notes that a side sends nothing more. If it is the service, what it has sent is
// under way all the same, as it would be without a proxy.
func (l *link) end(who string, err error) {
	l.proxy.mu.Lock()
	foul := l.dialect.foul(err)
	if foul && l.proxy.foul == nil && !l.closed {
		l.proxy.foul = fmt.Errorf("%s sent what is %w", who, err)
	}
	if foul || who != service {
		l.shut()
	}
	l.ended = true
	l.proxy.signal()
	l.proxy.mu.Unlock()
	l.advance()
}

// settle closes a connection that the service has ended, if nothing of it is under way:
// nobody waits for a stalled reply, and the store gives up what waits when a connection ends.
func (l *link) settle() {
	if l.ended && len(l.queue) > 0 && l.queue[0].state == stalled {
		l.leave()
	}
	waits := l.opaque || slices.Contains(l.awaited, blocking)
	if l.ended && (waits || len(l.queue) == 0 && len(l.awaited) == 0) {
		l.shut()
	}
}

// shut closes both connections; what is in the queue has no effect.
func (l *link) shut() {
	if l.closed {
		return
	}
	l.closed = true
	delete(l.proxy.links, l)
	for len(l.queue) > 0 {
		l.leave()
	}
	_ = l.service.Close() // the other side may have closed it before
	if l.store != nil {
		_ = l.store.Close()
	}
	if l.session != 0 {
		l.proxy.left = append(l.proxy.left, l.session)
	}
	l.proxy.room.Broadcast()
	l.proxy.signal()
}

// leave takes the first command out of the queue.
func (l *link) leave() *Command {
	command := l.queue[0]
	l.queue = l.queue[1:]
	if i := slices.Index(l.proxy.held, command); i >= 0 {
		l.proxy.held = slices.Delete(l.proxy.held, i, i+1)
	}
	l.ahead -= len(command.raw) + least
	l.proxy.room.Broadcast()
	if l.sent == command {
		l.sent = nil
	}
	if command.state <= sending {
		close(command.got)
	}
	command.state = gone
	return command
}

// arrive takes a command of the service.
func (l *link) arrive(command *Command) {
	proxy := l.proxy
	proxy.mu.Lock()
	for l.ahead > maxAhead && !l.closed {
		proxy.room.Wait()
	}
	proxy.mu.Unlock()

	l.toStore.Lock()
	defer l.toStore.Unlock()
	proxy.mu.Lock()
	if l.closed {
		proxy.mu.Unlock()
		return
	}
	if len(l.queue) == 0 && (command.manner != data || !proxy.on) {
		l.passes(command)
		proxy.mu.Unlock()
		l.write(command)
		return
	}
	kept := new(Command) // apart, so that what passes at once is not allocated
	*kept = *command
	kept.link = l
	kept.raw = bytes.Clone(command.raw)
	kept.got = make(chan struct{})
	if len(kept.parts) == 0 {
		kept.parts = [][]string{resp.Texts(command.words)}
	}
	kept.words = nil
	l.queue = append(l.queue, kept)
	l.ahead = l.ahead + len(command.raw) + least
	if command.manner == data {
		proxy.held = append(proxy.held, kept)
		proxy.signal()
	}
	proxy.mu.Unlock()
}

// passes notes that a command is sent whose reply goes to the service by itself.
func (l *link) passes(command *Command) {
	if command.manner == subscribing {
		l.opaque = true
	}
	if l.proxy.on && (command.manner == blocking || command.manner == subscribing) {
		l.proxy.passed = append(l.proxy.passed, command.name())
	}
	if !l.opaque && command.manner != unanswered {
		l.awaited = append(l.awaited, command.manner)
	}
}

// advance passes what is next in the queue, up to what is held.
func (l *link) advance() {
	l.toStore.Lock()
	defer l.toStore.Unlock()
	for {
		l.proxy.mu.Lock()
		l.settle()
		if len(l.queue) == 0 || l.queue[0].manner == data && (l.proxy.on || l.queue[0].state != waiting) {
			l.proxy.mu.Unlock()
			return
		}
		command := l.leave()
		l.passes(command)
		l.proxy.mu.Unlock()
		l.write(command)
	}
}

// keep takes a reply that the service does not get by itself, and returns the command that it is of, if any.
func (l *link) keep(raw []byte, pushed bool) (of *Command, kept bool) {
	proxy := l.proxy
	proxy.mu.Lock()
	defer proxy.mu.Unlock()
	switch command := l.sent; {
	case pushed || l.opaque || l.closed:
		return nil, false
	case len(l.awaited) > 0:
		if l.awaited[0] == inTransaction && !l.dialect.fails(raw) && !bytes.HasPrefix(raw, []byte("+QUEUED")) && proxy.on {
			proxy.passed = append(proxy.passed, "what follows MULTI") // which was refused, so this has had its effect
		}
		return nil, false
	case command != nil:
		command.reply = bytes.Clone(raw)
		command.said = l.dialect.text(raw)
		command.state = replied
		l.sent = nil
		close(command.got)
		return command, true
	case l.dialect.fails(raw): // before it closes a connection that it does not want
		return nil, false
	default:
		if proxy.foul == nil {
			proxy.foul = fmt.Errorf("a reply of %s to nothing that was sent: %.32q", l.door.title(), raw)
		}
		l.shut()
		return nil, true
	}
}

// write sends to the store. If that fails, reading the reply does too, and ends the connection.
func (l *link) write(command *Command) {
	l.dialect.sends(command)
	_, _ = l.store.Write(command.raw)
}

// give sends to the service, which may have gone.
func (l *link) give(raw []byte) {
	l.toService.Lock()
	defer l.toService.Unlock()
	_, _ = l.service.Write(raw)
}
