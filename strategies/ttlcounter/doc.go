// Package ttlcounter holds the strategies that keep one Redis counter per
// subject and window and leave it to the key's time to live to clear it away:
// "incr-expire" and its hardened form "incr-expire-atomic", after record 000,
// and "decr-literal", after record 001.
//
// The window is part of the key, so a new window starts from nothing whether or
// not the old key has expired. What expiry decides is how long keys live, and
// what happens to a command that reaches Redis after its own window's key is
// gone.
package ttlcounter

import (
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// tumbling are the windows that can be part of a key.
var tumbling = []quota.Kind{quota.CalendarMonth, quota.CalendarDay, quota.CalendarHour, quota.Fixed}

func init() {
	strategies.Register(incrExpireMeta)
	strategies.Register(incrExpireAtomicMeta)
	strategies.Register(decrLiteralMeta)
}
