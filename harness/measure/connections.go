package measure

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
)

// CheckRoom reports the first strategy whose connections a store has no room for: it
// would fail in every round. Stores is set.
func (c *Config) CheckRoom(ctx context.Context) error {
	selected, _ := c.Split()
	type room struct {
		left    int
		setting string
	}
	rooms := map[string]*room{}
	for _, s := range selected {
		for _, name := range storesOf(s) {
			st, here := c.Stores.Get(name)
			r, can := st.(stores.Roomer)
			if !here || !can {
				continue
			}
			if _, asked := rooms[name]; !asked {
				rooms[name] = nil
				if left, setting, known := r.Room(ctx); known {
					rooms[name] = &room{left, setting}
				}
			}
			has, each := rooms[name], c.poolFor(s, name, st.Driver())
			if has == nil || each*c.Instances <= has.left {
				continue
			}
			return fmt.Errorf("strategy %s opens %d connections to %s in each of %d instances, %d in all, "+
				"and the server has room for %d (%s): give a smaller --pool, fewer --instances, or raise that",
				s, each, name, c.Instances, each*c.Instances, has.left, has.setting)
		}
	}
	return nil
}

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
