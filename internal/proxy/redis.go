package proxy

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/fakeredis/resp"
)

// Redis opens a door to a Redis. dial connects to it, once for each connection of the service; if it fails, that
// connection is closed. A connection of the service logs in by the password, unless that is empty.
func (p *Proxy) Redis(password string, dial func(context.Context) (net.Conn, error)) (*Door, error) {
	return p.open("redis", password, func(l *link) dialect {
		return &redis{link: l, dial: dial, service: resp.NewReader(l.service)}
	})
}

// redis is one connection by Redis' protocol.
type redis struct {
	link    *link
	dial    func(context.Context) (net.Conn, error)
	service *resp.Reader
	store   *resp.Reader

	// What follows belongs to the goroutine that reads the service's commands.
	command Command
	// loggedIn is set once the service has sent the proxy's password.
	loggedIn bool
	// What the service's commands have begun, in the order in which they arrive.
	multi      bool
	queued     [][]string
	remembered int // bytes of queued
	subscribed bool
}

func (r *redis) open(ctx context.Context) (net.Conn, error) {
	conn, err := r.dial(ctx)
	if err == nil {
		r.store = resp.NewReader(conn)
	}
	return conn, err
}

func (r *redis) next() (*Command, error) {
	args, raw, err := r.service.Command()
	if err != nil {
		return nil, err
	}
	r.command = Command{raw: raw, words: args, manner: mannerOf(args)}
	r.classify(args, raw)
	return &r.command, nil
}

func (r *redis) sends(*Command) {}

func (r *redis) reply() (raw []byte, pushed bool, err error) {
	raw, err = r.store.Reply()
	return raw, err == nil && raw[0] == '>', err
}

func (r *redis) text(raw []byte) string { return resp.Text(raw) }

func (r *redis) fails(raw []byte) bool { return raw[0] == '-' }

func (r *redis) foul(err error) bool { return errors.Is(err, resp.ErrProtocol) }

// classify says how a command is treated, and follows what it begins or ends.
func (r *redis) classify(args [][]byte, raw []byte) {
	command := &r.command
	if r.link.door.password != "" {
		command.raw = r.login(args, raw)
		if !r.loggedIn {
			r.link.proxy.mu.Lock()
			r.link.door.barred++
			r.link.proxy.mu.Unlock()
			command.manner = passing
			return
		}
	}
	switch command.manner {
	case refused:
		command.manner = passing
		command.raw = refusal
	case subscribing:
		r.subscribed = true
	case begins:
		r.multi = true
		r.queued = nil
		r.remembered = 0
	case aborts:
		r.multi = false
		r.queued = nil
	case ends:
		command.manner = data
		command.parts = r.queued
		r.multi = false
		r.queued = nil
	default:
		if r.multi {
			command.manner = inTransaction
			r.remembered += len(raw)
			if r.remembered <= maxAhead {
				r.queued = append(r.queued, resp.Texts(args))
			}
		}
	}
	if r.subscribed && (command.manner == data || command.manner == inTransaction) {
		command.manner = blocking
	}
}

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
