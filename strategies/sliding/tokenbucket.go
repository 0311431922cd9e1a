package sliding

import (
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

var (
	bucketScript     = family.Script(files, "bucket.lua")
	bucketUsedScript = family.Script(files, "bucket_used.lua")
)

var tokenBucketMeta = bucket{
	take: bucketScript, takeArgs: func(f flow, units int64) []any {
		return []any{f.size, units, f.refill, micros(f.length), lifetime(f.whole())}
	},
	used: bucketUsedScript, usedArgs: func(f flow) []any { return []any{f.size, f.refill, micros(f.length)} },
}.meta(strategies.Meta{Name: "token-bucket"})
