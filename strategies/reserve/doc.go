// Package reserve holds the strategies of ADR-RM-3, tenants' storage: the race
// that it starts from, "check-then-set"; the same under a lock in each process,
// "app-lock", which it rules out for several instances; and its answer,
// "lua-reserve", which reserves and refunds by script and is overwritten from the
// table of stored files by a nightly job. "lua-reserve-hardened" is what is left of
// that answer once its leaks are mended.
//
// The record knows no windows: what is reserved stays so until it is given back.
package reserve

import (
	"embed"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

//go:embed notes.md *.lua lua/*.lua
var files embed.FS

func init() {
	family.Register(files, appLockMeta, checkThenSetMeta, luaReserveMeta, hardenedMeta)
}

// keys names what is stored per subject as the record does: quota:tenant:ID:used.
// For policies that the record does not name, the policy's name stands where it
// says "tenant". Neither holds a colon, so keys are unambiguous for any subject.
type keys struct{ family string }

func newKeys(env strategies.Env) keys { return keys{env.Prefix + "quota:"} }

func (k keys) used(policy string, subject quota.Subject) string {
	return k.family + segment(policy) + ":" + string(subject) + ":used"
}

func (k keys) limit(policy string, subject quota.Subject) string {
	return k.family + segment(policy) + ":" + string(subject) + ":limit"
}

// segment is what keys call the policy of that name.
func segment(policy string) string { return family.KeySegment(policy, "tenant-uploads", "tenant") }
