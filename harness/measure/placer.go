package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/quotabench/quotabench/internal/machine/cores"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// placer puts this process and the stores that were started here on cores, pass by
// pass, and changes only what differs from the pass before. The stores stay where
// they are between passes, and the harness gets its cores back: it judges with all
// of them.
type placer struct {
	asked   Cores
	set     *stores.Set
	allowed cores.Set
	order   []int // of the allowed cores, neighbours side by side
	known   bool
	procs   int // GOMAXPROCS of before
	// held is set if this placer may change the process.
	held bool
	// refused says why nothing is placed any more; "" if all went well.
	refused string
	// confined are the cores of the stores; "" for all.
	confined string
}

// placing is held by the one measurement of the process that may place it.
var placing sync.Mutex

// newPlacer finds out which cores there are. What it returns must be closed.
func newPlacer(cfg *Config) *placer {
	p := &placer{asked: cfg.Cores, set: cfg.Stores, procs: runtime.GOMAXPROCS(0), held: placing.TryLock()}
	p.allowed, p.known = cores.Allowed()
	if !p.known {
		for i := range runtime.NumCPU() {
			p.allowed = append(p.allowed, i)
		}
	}
	p.order = cores.Adjacent(p.allowed)
	if !p.held {
		p.refused = "another measurement of this process is under way"
	}
	return p
}

// take places a pass that needs the named stores, in an open loop or a closed one; perSecond
// is the rate of an open loop, or 0 if it is not known. lift ends it; it may be called
// more than once. What cannot be placed stays where it is, with the reason. A nil
// placer places nothing.
func (p *placer) take(ctx context.Context, open bool, perSecond float64, names []string) (in results.Placement, lift func()) {
	if p == nil {
		return results.Placement{Mode: results.PlacedShared, Procs: runtime.GOMAXPROCS(0), Reason: "nothing is placed"}, func() {}
	}
	g := &ground{open: open, often: open && perSecond > oftenAbove, cores: p.order, known: p.known, procs: p.procs}
	for _, name := range names {
		if s, ok := p.set.Get(name); ok {
			g.stores = append(g.stores, standing{place: stores.PlaceOf(s), sql: asksSQL(s)})
		}
	}
	in = p.asked.place(g)
	if p.refused == "" {
		lift, err := p.put(ctx, &in)
		if err == nil {
			return in, lift
		}
		p.refused = p.asked.String() + " was refused: " + err.Error()
	}
	in = results.Placement{Mode: results.PlacedShared, Procs: p.procs, Reason: p.refused}
	return in, func() {}
}

// put applies a placement. If an error is returned all is as it was before the
// first pass.
func (p *placer) put(ctx context.Context, in *results.Placement) (lift func(), err error) {
	if err := p.confineStores(ctx, in.Stores); err != nil {
		return nil, errors.Join(err, p.confineStores(ctx, ""))
	}
	free := func() error { return nil }
	if in.Harness != "" {
		set, err := cores.Parse(in.Harness)
		if err == nil {
			free, err = cores.ConfineSelf(set)
		}
		if err != nil {
			return nil, errors.Join(err, p.confineStores(ctx, ""))
		}
	}
	if in.Procs != p.procs || in.Harness != "" {
		// Also if the number is the same: one that was set does not follow the cores.
		runtime.GOMAXPROCS(in.Procs)
	}
	return sync.OnceFunc(func() {
		if runtime.GOMAXPROCS(0) != p.procs {
			runtime.GOMAXPROCS(p.procs)
		}
		if err := free(); err != nil {
			p.refused = "the harness could not be freed again: " + err.Error()
		}
	}), nil
}

// confineStores puts all stores that were started here on the cores; "" is all
// that this process may use.
func (p *placer) confineStores(ctx context.Context, list string) error {
	if list == p.confined {
		return nil
	}
	set := p.allowed
	if list != "" {
		var err error
		if set, err = cores.Parse(list); err != nil {
			return err
		}
	}
	var errs []error
	for _, name := range p.set.Names() {
		s, _ := p.set.Get(name)
		if placed, ok := s.(stores.Placed); ok && placed.Place() == stores.StartedHere {
			if err := placed.Confine(ctx, set); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	p.confined = list
	return errors.Join(errs...)
}

// forget has the next pass place the stores anew: one of their servers is new.
func (p *placer) forget() {
	if p != nil {
		p.confined = "unknown"
	}
}

// close gives the stores all cores again.
func (p *placer) close(ctx context.Context) {
	if !p.held {
		return
	}
	// A store that has ended meanwhile needs no cores, and others say so themselves.
	_ = p.confineStores(context.WithoutCancel(ctx), "")
	placing.Unlock()
}

// storesOf are the names of the stores that a strategy needs.
func storesOf(sel strategies.Selection) []string {
	var names []string
	for _, need := range sel.Needs {
		names = append(names, need.Store())
	}
	return names
}
