package measure

import (
	"testing"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// TestPoolFor: what the run was given goes before what the strategy asks for, which
// goes before the driver's; and connections that no caller can use are not opened.
func TestPoolFor(t *testing.T) {
	asking := strategies.Selection{Options: quota.Options{"pool": "100"}, Meta: &strategies.Meta{
		Connections: func(store string, o quota.Options) strategies.Connections {
			if store != "postgres.2" {
				return strategies.Connections{}
			}
			return strategies.Connections{Pool: int(o.Int("pool"))}
		},
	}}
	for _, c := range []struct {
		pool, workers, instances int
		store                    string
		want                     int
	}{
		{0, 200, 1, "postgres.2", 100},
		{0, 50, 1, "postgres.2", 50},
		{0, 51, 2, "postgres.2", 26},
		{8, 200, 1, "postgres.2", 8},
		{0, 200, 1, "postgres", maxPool},
	} {
		cfg := Config{Plan: harness.Plan{Workers: c.workers, Instances: c.instances}, Pool: c.pool}
		if got := cfg.poolFor(asking, c.store, "postgres"); got != c.want {
			t.Errorf("%+v: %d connections", c, got)
		}
	}
}
