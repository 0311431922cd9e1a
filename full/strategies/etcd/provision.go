package etcd

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// maxOps is how many operations a transaction may have by etcd's defaults.
const maxOps = 128

// Provision writes the counters of the window in force. A counter that exists is
// replaced.
func (c *counter) Provision(ctx context.Context, p *quota.Policy, grants []strategies.Grant) error {
	for _, g := range grants {
		if g.Limit != p.Limit {
			return fmt.Errorf("limit %d for %s: all subjects share the limit of policy %s, %d", g.Limit, g.Subject, p.Name, p.Limit)
		}
	}
	span := p.Window.At(c.Clock.Now())
	write := func(options ...clientv3.OpOption) error {
		for batch := range slices.Chunk(grants, maxOps) {
			ops := make([]clientv3.Op, len(batch))
			for i, g := range batch {
				key := c.Key(g.Subject, p, span.Index)
				ops[i] = clientv3.OpPut(key, strconv.FormatInt(g.Used, 10), options...)
				if g.Used == 0 {
					ops[i] = clientv3.OpDelete(key)
				}
			}
			if _, err := c.etcd.Txn(ctx).Then(ops...).Commit(); err != nil {
				return fmt.Errorf("provision %d subjects: %w", len(grants), err)
			}
		}
		return nil
	}
	if c.leases == nil || span.End.IsZero() {
		return write()
	}
	return c.leases.with(ctx, span, func(id clientv3.LeaseID) error { return write(clientv3.WithLease(id)) })
}
