package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	conditions "github.com/quotabench/quotabench/internal/network"
	"github.com/quotabench/quotabench/strategies"
)

// wrong is what is wrong with the network on purpose, and what it has lost.
type wrong struct {
	all      []conditions.Condition
	start    int64 // of the run
	length   time.Duration
	rng      *rand.Rand
	requests int64
	replies  int64
}

func newWrong(cfg *Config, rng *rand.PCG) wrong {
	return wrong{all: conditions.Plan(cfg.Network), start: cfg.Start.UnixNano(), length: cfg.Duration, rng: rand.New(rng)}
}

// between are the conditions between an instance and a store.
func (w *wrong) between(instance int, store strategies.Need) (out []conditions.Condition) {
	for _, c := range w.all {
		if c.Store == string(store) && (c.Instance < 0 || c.Instance == instance) {
			out = append(out, c)
		}
	}
	return out
}

// delay is by how much a reply that is sent now is later.
func (w *network) delay(to *route) (d time.Duration) {
	for i := range to.wrong {
		if c := &to.wrong[i]; c.Latency > 0 && c.In(time.Duration(w.s.Nano()-w.wrong.start), w.wrong.length) {
			d += c.Delay(w.wrong.rng.Float64())
		}
	}
	return d
}

// errLost is what a client sees of a request or a reply that is lost: a connection that was reset.
var errLost = conditions.Reset("planned loss")

// loses draws whether a request that is sent while requests are issued is lost, which is an error after its way there, or
// its reply will be.
func (w *network) loses(ctx context.Context, to *route) (reply bool, lost error) {
	for i := range to.wrong {
		c := &to.wrong[i]
		if !w.watching || !c.In(time.Duration(w.s.Nano()-w.wrong.start), w.wrong.length) {
			continue
		}
		if c.Loss > 0 && w.wrong.rng.Float64() < c.Loss {
			w.wrong.requests++
			if err := w.clock.Sleep(ctx, to.far+to.to.request.draw(w.rng)); err != nil {
				return false, err
			}
			return false, errLost
		}
		reply = reply || c.ReplyLoss > 0 && w.wrong.rng.Float64() < c.ReplyLoss
	}
	if reply {
		w.wrong.replies++
	}
	return reply, nil
}

// checkNetwork reports a condition that virtual time cannot have.
func (c *Config) checkNetwork() error {
	if err := conditions.Check(c.Network, c.Topology.total(), c.Duration); err != nil {
		return err
	}
	for i, n := range conditions.Plan(c.Network) {
		switch text := c.Network[i]; {
		case n.Store != string(strategies.NeedRedis) && n.Store != string(strategies.NeedPostgres):
			return fmt.Errorf("the network %s: a simulation has the stores redis and postgres", text)
		case n.Cut:
			return fmt.Errorf("the network %s: a simulation has no time-outs of clients, so nothing would end a cut: give loss=1", text)
		case n.Bandwidth > 0:
			return fmt.Errorf("the network %s: a simulation sends no bytes: leave out the bandwidth", text)
		}
	}
	return nil
}
