package sliding

import (
	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

var (
	//go:embed bucket.lua
	bucketSource string
	//go:embed bucket_used.lua
	bucketUsedSource string

	bucketScript     = redis.NewScript(bucketSource)
	bucketUsedScript = redis.NewScript(bucketUsedSource)
)

var tokenBucketMeta = strategies.Meta{
	Name:      "token-bucket",
	Needs:     []strategies.Need{strategies.NeedRedis},
	Kinds:     bucketKinds,
	Serves:    servesFlow,
	Counts:    quota.CountsAdmitted,
	Options:   []quota.Option{burstOption},
	Guarantee: flowGuarantee,
	Open: bucket{
		take: bucketScript, takeArgs: func(f flow, units int64) []any {
			return []any{f.size, units, f.refill, micros(f.length), lifetime(f.whole())}
		},
		used: bucketUsedScript, usedArgs: func(f flow) []any { return []any{f.size, f.refill, micros(f.length)} },
	}.open,
}
