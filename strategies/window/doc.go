// Package window holds the rate limiters of ProjectEPU, whose windows have a fixed
// length: "fixed-window", one Redis counter per subject and numbered window, and
// "memory-deque", the timestamps of admitted requests, in the memory of one process.
// The first falls back to the second when Redis does not answer.
//
// A numbered window lets through its limit at its end and once more at the next
// one's beginning, twice the limit within one length of time. A deque does not,
// but each process has its own. Both are offered for fixed windows, full
// hours among them, and for rolling ones, so that either way of counting can be checked against either promise.
package window

import (
	"embed"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

//go:embed notes.md *.lua
var files embed.FS

// kinds are the windows of one length. An hour of the calendar is one:
// ProjectEPU's limiter takes any number of seconds.
var kinds = []quota.Kind{quota.Fixed, quota.Rolling, quota.CalendarHour}

// length of a window, in policy time.
func length(window quota.Window) time.Duration {
	if window.Kind == quota.CalendarHour {
		return time.Hour
	}
	return window.Length
}

func init() {
	family.Register(files, fixedMeta, dequeMeta)
}
