package postgres

import "github.com/quotabench/quotabench/stores"

var _ stores.Pooled = conn{}

// PoolUse is what the pool counts.
func (c conn) PoolUse() stores.PoolUse {
	s := c.pool.Stat()
	return stores.PoolUse{Taken: s.AcquireCount(), Waited: s.EmptyAcquireCount(), Wait: s.EmptyAcquireWaitTime()}
}
