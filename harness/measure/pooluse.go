package measure

import (
	"maps"
	"slices"

	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
)

// siteConn is an instance's client of one of the site's stores.
type siteConn struct {
	stores.Conn
	store string
}

// poolUse is how the pools of all instances were used, by store. Clients that do not
// tell have none.
func (s *site) poolUse() map[string]stores.PoolUse {
	out := map[string]stores.PoolUse{}
	for _, c := range s.conns {
		if p, ok := c.Conn.(stores.Pooled); ok {
			out[c.store] = out[c.store].Add(p.PoolUse())
		}
	}
	return out
}

// poolWaits is what was waited for connections between two such readings.
func poolWaits(before, after map[string]stores.PoolUse) (out []results.PoolWait) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		u := after[name].Sub(before[name])
		out = append(out, results.PoolWait{Store: name, Taken: u.Taken, Waited: u.Waited, WaitNS: int64(u.Wait)})
	}
	return out
}
