package sliding

import (
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

var (
	gcraScript     = family.Script(files, "gcra.lua")
	gcraUsedScript = family.Script(files, "gcra_used.lua")
)

// gcraMeta: one moment per subject is kept.
var gcraMeta = bucket{
	take: gcraScript, takeArgs: func(f flow, units int64) []any { return []any{f.size, units, f.refill, micros(f.length)} },
	used: gcraUsedScript, usedArgs: func(f flow) []any { return []any{f.refill, micros(f.length)} },
}.meta(strategies.Meta{Name: "gcra", Core: true})
