package stores

import "time"

// PoolUse is how a client's pool of connections was used since it was opened.
type PoolUse struct {
	// Taken counts connections that were taken from the pool.
	Taken int64
	// Waited counts those for which the caller had to wait, since all were in use.
	Waited int64
	// Wait is the sum of these waits. What was given up before it got a connection is not
	// in it.
	Wait time.Duration
}

// Sub returns what was used between the earlier state and u.
func (u PoolUse) Sub(earlier PoolUse) PoolUse {
	return PoolUse{Taken: u.Taken - earlier.Taken, Waited: u.Waited - earlier.Waited, Wait: u.Wait - earlier.Wait}
}

// Add returns both together.
func (u PoolUse) Add(o PoolUse) PoolUse {
	return PoolUse{Taken: u.Taken + o.Taken, Waited: u.Waited + o.Waited, Wait: u.Wait + o.Wait}
}

// Pooled is a [Conn] that can tell how its pool was used, at any time.
type Pooled interface {
	Conn
	PoolUse() PoolUse
}
