package hold

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

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
var refusal = func() []byte {
	const name = "THE-PROXY-REFUSES-THIS-COMMAND"
	return fmt.Appendf(nil, "*1\r\n$%d\r\n%s\r\n", len(name), name)
}()

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
	has := func(in [][]byte, words ...string) bool {
		return slices.ContainsFunc(in, func(a []byte) bool {
			return slices.ContainsFunc(words, func(w string) bool { return bytes.EqualFold(a, []byte(w)) })
		})
	}
	second := args[1:min(len(args), 2)]
	switch m := manners[name]; {
	case (m == begins || m == ends) && len(args) > 1: // an error
		return passing
	case name == "client" && has(second, "reply"):
		return subscribing
	case (name == "script" || name == "function") && has(second, "flush", "delete", "restore"):
		return data
	case (name == "xread" || name == "xreadgroup") && has(args, "block"):
		return blocking
	default:
		return m
	}
}
