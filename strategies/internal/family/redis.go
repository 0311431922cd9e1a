package family

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/kit/scripts"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// KeySegment is how a record's keys call the policy of that name. Its own policy
// has the record's word for it, any other one its own name. A policy whose name is
// that very word changes places with the record's, so that two policies never have
// the same segment.
func KeySegment(policy, own, word string) string {
	switch policy {
	case own:
		return word
	case word:
		return own
	}
	return policy
}

// Script is that of a file of a package.
func Script(files embed.FS, name string) *redis.Script {
	source := Text(files, name)
	scripts.Learn(source, path.Base(name))
	return redis.NewScript(source)
}

// Load loads scripts, so that every instance asks by digest from its first call on.
func Load(ctx context.Context, scripter redis.Scripter, scripts ...*redis.Script) error {
	for _, script := range scripts {
		if err := script.Load(ctx, scripter).Err(); err != nil {
			return fmt.Errorf("loading the scripts: %w", err)
		}
	}
	return nil
}

// Numbers is the answer of a script that gives so many numbers.
func Numbers(cmd *redis.Cmd, n int) ([]int64, error) {
	res, err := cmd.Int64Slice()
	if err == nil && len(res) != n {
		err = fmt.Errorf("the script answered %v", res)
	}
	return res, err
}

// Number reads the number at a key; known is false if there is none.
func Number(ctx context.Context, client redis.Cmdable, key string) (n int64, known bool, err error) {
	n, err = client.Get(ctx, key).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, false, nil
	}
	return n, err == nil, err
}

// Increment uses a record's INCR wherever it says the same as INCRBY.
func Increment(ctx context.Context, client redis.Cmdable, key string, units int64) *redis.IntCmd {
	if units == 1 {
		return client.Incr(ctx, key)
	}
	return client.IncrBy(ctx, key, units)
}

// Reading is what the number at a key says that a subject has used.
func Reading(ctx context.Context, client redis.Cmdable, key string, subject quota.Subject) ([]quota.Reading, error) {
	n, known, err := Number(ctx, client, key)
	if err != nil {
		return nil, fmt.Errorf("reading what %s has used: %w", subject, err)
	}
	return []quota.Reading{{Tier: quota.TierRedis, Units: n, Known: known}}, nil
}

// provisionBatch is how many subjects are set up in a round trip.
const provisionBatch = 1000

// Provision runs the commands that add gives for each grant.
func Provision(ctx context.Context, client redis.UniversalClient, grants []strategies.Grant,
	add func(redis.Pipeliner, strategies.Grant)) error {
	for batch := range slices.Chunk(grants, provisionBatch) {
		pipe := client.Pipeline()
		for _, grant := range batch {
			add(pipe, grant)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return fmt.Errorf("setting up %d subjects: %w", len(batch), err)
		}
	}
	return nil
}

// ProvisionAlike is [Provision] of subjects that share the limit of the policy.
func ProvisionAlike(ctx context.Context, client redis.UniversalClient, policy *quota.Policy, grants []strategies.Grant,
	add func(redis.Pipeliner, strategies.Grant)) error {
	if err := OneLimit(policy, grants); err != nil {
		return err
	}
	return Provision(ctx, client, grants, add)
}

// ProvisionCounters sets up the counters of subjects, which share the limit of the policy:
// key names one, and set adds the commands that write it. Who has used nothing has none.
func ProvisionCounters(ctx context.Context, client redis.UniversalClient, policy *quota.Policy,
	grants []strategies.Grant,
	key func(quota.Subject) string, set func(pipe redis.Pipeliner, key string, used int64)) error {
	return ProvisionAlike(ctx, client, policy, grants, func(pipe redis.Pipeliner, grant strategies.Grant) {
		if grant.Used == 0 {
			pipe.Del(ctx, key(grant.Subject))
			return
		}
		set(pipe, key(grant.Subject), grant.Used)
	})
}
