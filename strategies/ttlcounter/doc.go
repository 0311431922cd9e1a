// Package ttlcounter holds the strategies that keep one Redis counter per
// subject and window and leave it to the key's time to live to clear it away:
// "incr-expire" and its hardened form "incr-expire-atomic", after ADR-008,
// and after ADR-009, whose prose and pseudo-code differ, "decr-expire" and
// "decr-literal".
//
// The window is part of the key, so a new window starts from nothing whether or
// not the old key has expired. What expiry decides is how long keys live, and
// what happens to a command that reaches Redis after its own window's key is
// gone.
//
// "scheduled-reset" is what both records turned down: counters without an expiry
// and without a window in their key, and a job that deletes them.
package ttlcounter

import (
	"embed"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

//go:embed notes.md *.lua
var files embed.FS

// ofDesignRecord is what both records say: all requests are served up to the limit, one at most
// crosses it, since Redis serves them one by one, and none is admitted while Redis is away.
func ofDesignRecord(source string) []quota.Clause {
	return []quota.Clause{
		{
			Property: quota.PropertyLeak, Tolerates: []quota.Fault{quota.FaultOutage}, Source: source,
			Says:    "one request at most crosses the limit",
			Formula: "L + largest cost", Bound: func(params quota.Params) int64 {
				if family.FailsOpen(params.Options) { // the records promise it of failing closed
					return params.Offered
				}
				return params.MaxCost
			},
		},
		family.RoomForSingleUnits.From(source, "all are served up to the limit"),
	}
}

func init() {
	family.Register(files, incrExpireMeta, incrExpireAtomicMeta, decrExpireMeta, decrLiteralMeta)
}
