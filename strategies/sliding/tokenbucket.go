package sliding

import (
	"context"
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
	Source:    "ProjectEPU",
	Doc:       "a hash of tokens and the time of that count, refilled by a script at the server's clock",
	Form:      strategies.Future,
	Needs:     []strategies.Need{strategies.NeedRedis},
	Kinds:     bucketKinds,
	Serves:    servesFlow,
	Counts:    quota.CountsAdmitted,
	Options:   []quota.Option{burstOption},
	Guarantee: flowGuarantee,
	Open: func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
		b, err := openBase(ctx, env, bucketScript, bucketUsedScript)
		return &tokenBucket{b, env.Options.Int("burst")}, err
	},
}

// tokenBucket keeps a bucket per subject. One that is not there is full.
type tokenBucket struct {
	base
	burst int64
}

var (
	_ strategies.Viewer      = (*tokenBucket)(nil)
	_ strategies.Provisioner = (*tokenBucket)(nil)
)

// Take implements [strategies.Strategy].
func (s *tokenBucket) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	f := newFlow(req.Policy, s.burst)
	return s.answer(ctx, bucketScript, []string{s.key(req.Subject, req.Policy)}, s.args(f, req.Units)...)
}

func (s *tokenBucket) args(f flow, units int64) []any {
	return []any{f.size, units, f.refill, micros(f.length), lifetime(f.whole())}
}

// Used implements [strategies.Viewer]: what is missing from the bucket.
func (s *tokenBucket) Used(ctx context.Context, subject quota.Subject, p *quota.Policy) ([]quota.Reading, error) {
	f := newFlow(p, s.burst)
	return s.reading(ctx, bucketUsedScript, []string{s.key(subject, p)}, f.size, f.refill, micros(f.length))
}

// Provision implements [strategies.Provisioner]: it fills the bucket, and takes out
// what was used.
func (s *tokenBucket) Provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
	f := newFlow(p, s.burst)
	return s.provision(ctx, p, grants, func(pipe redis.Pipeliner, g strategies.Grant) {
		key := s.key(g.Subject, p)
		pipe.Del(ctx, key)
		if g.Used > 0 {
			bucketScript.EvalSha(ctx, pipe, []string{key}, s.args(f, min(g.Used, f.size))...)
		}
	})
}
