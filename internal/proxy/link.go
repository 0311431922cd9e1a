package proxy

import (
	"bytes"
	"errors"
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

// link is one connection of the service, and its own one to Redis.
//
// At most one command is held back at Redis' side, the first of the queue: what is
// behind it is sent once it has been answered. So Redis owes the replies that are passed
// on first, in their order, and then that of the command that was released.
type link struct {
	proxy   *Proxy
	number  int
	service net.Conn

	// Each is held while something is written, and taken before the proxy's mutex.
	toRedis, toService sync.Mutex

	// What follows is guarded by the proxy's mutex.
	redis   net.Conn
	queue   []*Command
	ahead   int      // bytes in the queue
	awaited []manner // of what was passed, the replies that Redis owes
	sent    *Command // whose reply comes after those
	opaque  bool     // a subscription was passed: replies belong to nothing that was sent
	ended   bool     // the service sends nothing more
	closed  bool
	// loggedIn is set once the service has sent the proxy's password.
	loggedIn bool

	// What the service's commands have begun, in the order in which they arrive.
	multi      bool
	queued     [][]string
	remembered int // bytes of queued
	subscribed bool
}

// serve connects to Redis, and passes on until both sides have ended.
func (l *link) serve() {
	redis, err := l.proxy.dial(l.proxy.ctx)
	l.proxy.mu.Lock()
	if err != nil {
		l.shut()
	}
	if l.closed {
		if err == nil {
			_ = redis.Close()
		}
		l.proxy.mu.Unlock()
		return
	}
	l.redis = redis
	l.proxy.mu.Unlock()
	l.proxy.running.Go(l.replies)
	l.commands()
}

// commands reads what the service sends until it ends.
func (l *link) commands() {
	reader := resp.NewReader(l.service)
	for {
		args, raw, err := reader.Command()
		if err != nil {
			l.end("the service", err)
			return
		}
		l.arrive(args, raw)
	}
}

// replies reads what Redis sends until it ends.
func (l *link) replies() {
	reader := resp.NewReader(l.redis)
	for {
		raw, err := reader.Reply()
		if err != nil {
			l.end("Redis", err)
			return
		}
		if l.keep(raw) {
			continue
		}
		l.give(raw)
		l.proxy.mu.Lock()
		if raw[0] != '>' && !l.opaque && len(l.awaited) > 0 {
			l.awaited = slices.Delete(l.awaited, 0, 1)
		}
		l.settle()
		l.proxy.mu.Unlock()
	}
}

// end notes that a side sends nothing more. If it is the service, what it has sent is
// under way all the same, as it would be without a proxy.
func (l *link) end(who string, err error) {
	l.proxy.mu.Lock()
	foul := errors.Is(err, resp.ErrProtocol)
	if foul && l.proxy.foul == nil && !l.closed {
		l.proxy.foul = fmt.Errorf("%s sent what is %w", who, err)
	}
	if foul || who == "Redis" {
		l.shut()
	}
	l.ended = true
	l.proxy.signal()
	l.proxy.mu.Unlock()
	l.advance()
}

// settle closes a connection that the service has ended, if nothing of it is under way:
// nobody waits for a stalled reply, and Redis gives up what waits when a connection ends.
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
	if l.redis != nil {
		_ = l.redis.Close()
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
func (l *link) arrive(args [][]byte, raw []byte) {
	proxy := l.proxy
	proxy.mu.Lock()
	for l.ahead > maxAhead && !l.closed {
		proxy.room.Wait()
	}
	proxy.mu.Unlock()

	l.toRedis.Lock()
	defer l.toRedis.Unlock()
	proxy.mu.Lock()
	if l.closed {
		proxy.mu.Unlock()
		return
	}
	command := l.classify(args, raw)
	if len(l.queue) == 0 && (command.manner != data || !proxy.on) {
		l.passes(command.manner)
		proxy.mu.Unlock()
		l.write(command.raw)
		return
	}
	kept := new(Command) // apart, so that what passes at once is not allocated
	*kept = command
	kept.raw = bytes.Clone(command.raw)
	kept.got = make(chan struct{})
	if len(kept.parts) == 0 {
		kept.parts = [][]string{resp.Texts(args)}
	}
	l.queue = append(l.queue, kept)
	l.ahead = l.ahead + len(command.raw) + least
	if command.manner == data {
		proxy.held = append(proxy.held, kept)
		proxy.signal()
	}
	proxy.mu.Unlock()
}

// classify says how a command is treated, and follows what it begins or ends.
func (l *link) classify(args [][]byte, raw []byte) Command {
	command := Command{link: l, raw: raw, manner: mannerOf(args)}
	if l.proxy.password != "" {
		command.raw = l.login(args, raw)
		if !l.loggedIn {
			l.proxy.barred++
			command.manner = passing
			return command
		}
	}
	switch command.manner {
	case refused:
		command.manner = passing
		command.raw = refusal
	case subscribing:
		l.subscribed = true
	case begins:
		l.multi = true
		l.queued = nil
		l.remembered = 0
	case aborts:
		l.multi = false
		l.queued = nil
	case ends:
		command.manner = data
		command.parts = l.queued
		l.multi = false
		l.queued = nil
	default:
		if l.multi {
			command.manner = inTransaction
			l.remembered += len(raw)
			if l.remembered <= maxAhead {
				l.queued = append(l.queued, resp.Texts(args))
			}
		}
	}
	if l.subscribed && (command.manner == data || command.manner == inTransaction) {
		command.manner = blocking
	}
	return command
}

// passes notes that a command is sent whose reply goes to the service by itself.
func (l *link) passes(m manner) {
	if m == subscribing {
		l.opaque = true
	}
	if l.proxy.on && (m == blocking || m == subscribing) {
		l.proxy.passed++
	}
	if !l.opaque {
		l.awaited = append(l.awaited, m)
	}
}

// advance passes what is next in the queue, up to what is held.
func (l *link) advance() {
	l.toRedis.Lock()
	defer l.toRedis.Unlock()
	for {
		l.proxy.mu.Lock()
		l.settle()
		if len(l.queue) == 0 || l.queue[0].manner == data && (l.proxy.on || l.queue[0].state != waiting) {
			l.proxy.mu.Unlock()
			return
		}
		command := l.leave()
		l.passes(command.manner)
		l.proxy.mu.Unlock()
		l.write(command.raw)
	}
}

// keep takes a reply that the service does not get by itself.
func (l *link) keep(raw []byte) bool {
	proxy := l.proxy
	proxy.mu.Lock()
	defer proxy.mu.Unlock()
	switch command := l.sent; {
	case raw[0] == '>' || l.opaque || l.closed:
		return false
	case len(l.awaited) > 0:
		if l.awaited[0] == inTransaction && raw[0] != '-' && !bytes.HasPrefix(raw, []byte("+QUEUED")) && proxy.on {
			proxy.passed++ // MULTI was refused, so this has had its effect
		}
		return false
	case command != nil:
		command.reply = bytes.Clone(raw)
		command.state = replied
		l.sent = nil
		close(command.got)
		return true
	case raw[0] == '-': // before it closes a connection that it does not want
		return false
	default:
		if proxy.foul == nil {
			proxy.foul = fmt.Errorf("a reply of Redis to nothing that was sent: %.32q", raw)
		}
		l.shut()
		return true
	}
}

// write sends to Redis. If that fails, reading the reply does too, and ends the connection.
func (l *link) write(raw []byte) { _, _ = l.redis.Write(raw) }

// give sends to the service, which may have gone.
func (l *link) give(raw []byte) {
	l.toService.Lock()
	defer l.toService.Unlock()
	_, _ = l.service.Write(raw)
}
