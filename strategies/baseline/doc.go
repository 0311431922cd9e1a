// Package baseline holds the strategies that mark the ends of every scale:
// "unlimited", which costs what the harness itself costs, and "exact", which is
// as right as a strategy can be and knows nothing of distribution.
package baseline

import (
	"embed"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

//go:embed notes.md
var files embed.FS

// everyKind and everyFault: neither baseline has a store that could fail.
var (
	everyKind     = quota.Kinds()
	everyFault    = quota.Faults()
	noFalseReject = family.NoFalseReject(everyFault...)
)

func init() {
	family.Register(files, unlimitedMeta, exactMeta)
}
