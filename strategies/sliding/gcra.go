package sliding

import (
	"context"
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
	Doc:       "generic cell rate algorithm: one key holds the time when the subject's bucket is full again",
	Form:      strategies.Reference,
	Core:      true,
	Needs:     []strategies.Need{strategies.NeedRedis},
	Kinds:     bucketKinds,
	Serves:    servesFlow,
	Counts:    quota.CountsAdmitted,
	Options:   []quota.Option{burstOption},
	Guarantee: flowGuarantee,
	Open: func(ctx context.Context, env strategies.Env) (strategies.Strategy, error) {
		b, err := openBase(ctx, env, gcraScript, gcraUsedScript)
		return &gcra{b, env.Options.Int("burst")}, err
	},
}

// gcra keeps one moment per subject. A subject without one has a full bucket.
type gcra struct {
	base
	burst int64
}

var (
	_ strategies.Viewer      = (*gcra)(nil)
	_ strategies.Provisioner = (*gcra)(nil)
)

// Take implements [strategies.Strategy].
func (s *gcra) Take(ctx context.Context, req quota.Request) (quota.Decision, error) {
	f := newFlow(req.Policy, s.burst)
	return s.answer(ctx, gcraScript, []string{s.key(req.Subject, req.Policy)}, f.size, req.Units, f.refill, micros(f.length))
}

// Used implements [strategies.Viewer]: what is missing from the bucket.
func (s *gcra) Used(ctx context.Context, subject quota.Subject, p *quota.Policy) ([]quota.Reading, error) {
	f := newFlow(p, s.burst)
	return s.reading(ctx, gcraUsedScript, []string{s.key(subject, p)}, f.refill, micros(f.length))
}

// Provision implements [strategies.Provisioner].
func (s *gcra) Provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
	f := newFlow(p, s.burst)
	return s.provision(ctx, p, grants, func(pipe redis.Pipeliner, g strategies.Grant) {
		key := s.key(g.Subject, p)
		pipe.Del(ctx, key)
		if g.Used > 0 {
			gcraScript.EvalSha(ctx, pipe, []string{key}, f.size, min(g.Used, f.size), f.refill, micros(f.length))
		}
	})
}
