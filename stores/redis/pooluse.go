package redis

import (
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/stores"
)

var _, _ stores.Pooled = conn{}, lentConn{}

// PoolUse is what the client counts, over all servers of a cluster.
func (c conn) PoolUse() stores.PoolUse { return poolUse(c.c) }

// PoolUse is what the client counts, its owner's commands included.
func (c lentConn) PoolUse() stores.PoolUse { return poolUse(c.c) }

func poolUse(c goredis.UniversalClient) stores.PoolUse {
	s := c.PoolStats()
	return stores.PoolUse{Taken: int64(s.Hits) + int64(s.Misses), Waited: int64(s.WaitCount), Wait: time.Duration(s.WaitDurationNs)}
}
