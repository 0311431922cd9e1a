package measure

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/overwrite"
	"github.com/quotabench/quotabench/stores"
)

// overwrite plans changes of the strategy's counters in a pass that starts now, each over a connection of its own. The returned function
// waits for one that is being made, and gives up the rest.
func (p *pass) overwrite(ctx context.Context) (stop func()) {
	plan := overwrite.Plan(p.m.cfg.Overwrites)
	return onTime(p.d.tb, plan, p.m.cfg.Duration, &p.overwriting, func(c overwrite.Change) error { return p.overwriteOnce(ctx, c) })
}

func (p *pass) overwriteOnce(ctx context.Context, c overwrite.Change) error {
	st := p.s.stores[string(p.s.Selection.RedisNeeds()[0])]
	conn, err := st.Connect(ctx, p.s.scope, stores.ConnOptions{Pool: 1})
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // what it sent was answered
	client, ok := conn.Client().(redis.UniversalClient)
	if !ok {
		return fmt.Errorf("the client of %s is no Redis client", st.Driver())
	}
	prefix := p.s.scope.Prefix()
	keys, err := overwrite.Keys(ctx, client, prefix)
	if err != nil {
		return err
	}
	n, err := c.Apply(ctx, client, prefix, keys)
	p.overwritten += n
	return err
}
