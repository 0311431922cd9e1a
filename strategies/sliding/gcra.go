package sliding

import (
	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

var (
	//go:embed gcra.lua
	gcraSource string
	//go:embed gcra_used.lua
	gcraUsedSource string

	gcraScript     = redis.NewScript(gcraSource)
	gcraUsedScript = redis.NewScript(gcraUsedSource)
)

var gcraMeta = strategies.Meta{
	Name:      "gcra",
	Core:      true,
	Needs:     []strategies.Need{strategies.NeedRedis},
	Kinds:     bucketKinds,
	Serves:    servesFlow,
	Counts:    quota.CountsAdmitted,
	Options:   []quota.Option{burstOption},
	Guarantee: flowGuarantee,
	// One moment per subject is kept.
	Open: bucket{
		take: gcraScript, takeArgs: func(f flow, units int64) []any { return []any{f.size, units, f.refill, micros(f.length)} },
		used: gcraUsedScript, usedArgs: func(f flow) []any { return []any{f.refill, micros(f.length)} },
	}.open,
}
