package sim

import (
	"context"

	"github.com/quotabench/quotabench/internal/memredis"
	"github.com/quotabench/quotabench/internal/overwrite"
)

// overwrite changes the strategy's counters in every Redis, in no time.
func (p *pass) overwrite(c overwrite.Change) error {
	for n := range p.st.tables {
		changed, err := p.st.overwrite(context.Background(), n, c)
		p.overwritten += changed
		if err != nil {
			return err
		}
	}
	return nil
}

// overwrite changes the counters in the Redis of that number.
func (st *site) overwrite(ctx context.Context, n int, c overwrite.Change) (int64, error) {
	prefix := st.prefix(n)
	if st.real != nil {
		keys, err := overwrite.Keys(ctx, st.admin, prefix)
		if err != nil {
			return 0, err
		}
		return c.Apply(ctx, st.admin, prefix, keys)
	}
	storeHook{w: st.w, table: st.tables[n], to: st.redis[n]}.present()
	var keys []string
	for _, k := range st.tables[n].Keys(nil) {
		keys = append(keys, k.Name)
	}
	client := memredis.Client(st.tables[n])
	defer func() { _ = client.Close() }()
	return c.Apply(ctx, client, prefix, keys)
}
