// Package replicated holds what the records turned down in favour of one cache: a
// Redis alone, as strong as its replicas ("redis-wait") or its log ("redis-durable")
// make it, which ADR-005 weighs as alternatives 1 and 3; and a lock over several
// independent Redis around a read, a check and a write ("redlock"), which ADR-RM-3
// weighs.
package replicated

import (
	"embed"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

//go:embed notes.md *.lua
var files embed.FS

// needDurable is a Redis of its own that flushes each write to disk.
const needDurable strategies.Need = "redis.durable"

// meta completes what the strategies have in common.
func meta(m strategies.Meta) strategies.Meta {
	m.Kinds = []quota.Kind{quota.CalendarMonth, quota.CalendarDay, quota.CalendarHour, quota.Fixed, quota.Standing}
	m.GivesBack = true
	m.Counts = quota.CountsAdmitted
	return m
}

func init() {
	family.Register(files, redisWaitMeta, redisDurableMeta, redlockMeta)
}
