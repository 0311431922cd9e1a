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
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

//go:embed notes.md
var notes string

func init() {
	family.Register(notes, appLockMeta, checkThenSetMeta, luaReserveMeta, hardenedMeta)
}

// keys names what is stored per subject as the record does: quota:tenant:ID:used.
// For policies that the record does not name, the policy's name stands where it
// says "tenant". Neither holds a colon, so keys are unambiguous for any subject.
type keys struct{ family string }

func newKeys(env strategies.Env) keys { return keys{env.Prefix + "quota:"} }

func (k keys) used(policy string, s quota.Subject) string {
	return k.family + segment(policy) + ":" + string(s) + ":used"
}

func (k keys) limit(policy string, s quota.Subject) string {
	return k.family + segment(policy) + ":" + string(s) + ":limit"
}

// segment is what keys call the policy of that name.
func segment(policy string) string { return strategies.KeySegment(policy, "tenant-uploads", "tenant") }

// reading reads a subject's count.
func (k keys) reading(ctx context.Context, c redis.UniversalClient, s quota.Subject, p *quota.Policy) ([]quota.Reading, error) {
	r := quota.Reading{Tier: quota.TierRedis, Known: true}
	var err error
	r.Units, err = c.Get(ctx, k.used(p.Name, s)).Int64()
	if errors.Is(err, redis.Nil) {
		r.Known = false
	} else if err != nil {
		return nil, fmt.Errorf("reading what %s has used: %w", s, err)
	}
	return []quota.Reading{r}, nil
}

// provisionBatch is how many subjects are set up per round trip.
const provisionBatch = 1000

// provision adds the commands for each grant to pipelines and runs them.
func provision(ctx context.Context, c redis.UniversalClient, grants []strategies.Grant, add func(redis.Pipeliner, strategies.Grant)) error {
	for len(grants) > 0 {
		n := min(provisionBatch, len(grants))
		pipe := c.Pipeline()
		for _, g := range grants[:n] {
			add(pipe, g)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return fmt.Errorf("setting up %d subjects: %w", n, err)
		}
		grants = grants[n:]
	}
	return nil
}
