package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/host/cores"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// ground is what a placement depends on in addition to what was asked for.
type ground struct {
	open bool // the loop
	// often is set if an open loop's releases leave its pacer no time to sleep in
	// which another goroutine could have its thread of Go.
	often bool
	// cores are those that this process may use, in an order in which neighbours
	// share a physical core. They only count if known is false: the system does
	// not let a program choose.
	cores []int
	known bool
	procs int // GOMAXPROCS if nothing is placed
	// stores are where those run that the strategy needs.
	stores []stores.Place
}

// ownCores is from how many cores on the stores have cores of their own. On fewer the harness and a store would have
// one each, and on a busy machine both wait for theirs: a strategy and a bare client then make about as many requests,
// which hides by how much they differ.
const ownCores = 4

// oftenAbove is the rate per second above which a pacer needs a thread of Go of its own:
// measured on 2 cores, where 2 and 3 threads gave the same latencies at this rate.
const oftenAbove = 10_000

// place decides where harness and stores run, for one strategy and load. What was
// asked for has passed [Cores.check].
func (c Cores) place(g *ground) results.Placement {
	switch c.Mode {
	case CoresShared:
		return g.shared("asked for")
	case CoresGiven:
		return c.given(g)
	}
	n := len(g.cores)
	here, ours := g.survey()
	switch {
	case len(g.stores) == 0:
		return g.shared("no store is needed")
	case here == 0:
		return g.shared("no server of this strategy runs on this machine next to the harness")
	case n < 2:
		return g.shared("there is one core")
	case n < ownCores && c.Mode != CoresApart:
		return g.shared(fmt.Sprintf("fewer than %d cores: harness and stores need them all", ownCores))
	case g.open:
		return c.placeOpen(g, ours > 0)
	case !g.known:
		placement := g.shared(loops[false] + " where " + cores.ErrUnsupported.Error() +
			": fewer threads of the harness leave room for the stores")
		placement.Procs = min(g.procs, n-max(1, n/2))
		if ours == 0 {
			placement.Procs = min(g.procs, n-1)
		}
		return placement
	case ours == 0:
		return g.split(n-1, 0, codes.PlacedBeside, loops[false]+
			" next to a server that was running already: one core is left to it")
	}
	return g.split(n-n/2, n/2, codes.PlacedApart, loops[false]+" with stores started here: they share half of the cores")
}

var loops = map[bool]string{false: "closed loop", true: "open loop"}

// survey counts the servers on this machine, and those of them that were started here.
func (g *ground) survey() (here, ours int) {
	for _, place := range g.stores {
		switch place {
		case stores.StartedHere:
			here++
			ours++
		case stores.OnThisHost:
			here++
		}
	}
	return here, ours
}

// placeOpen places an open loop, whose pacer needs a core at any moment.
func (c Cores) placeOpen(g *ground, ours bool) results.Placement {
	n := len(g.cores)
	own := max(1, min(n/2, n-(ownCores-1)))
	switch {
	case !g.known:
		return g.shared(loops[true] + " where " + cores.ErrUnsupported.Error())
	case !ours:
		return g.shared(loops[true] + " next to a server that was running already")
	}
	return g.split(n-own, own, codes.PlacedApart, loops[true]+
		" with stores started here: the harness keeps a core for its pacer")
}

// shared leaves everything to the system.
func (g *ground) shared(reason string) results.Placement {
	return results.Placement{Mode: codes.PlacedShared, Procs: g.forPacer(g.procs), Reason: reason}
}

// forPacer is the number of threads that run Go code, if n would do without the
// pacer of an open loop: on a single one it would take turns with the workers. A pacer
// that releases often keeps its thread, so workers have two only if there are
// three. With fewer releases a third thread would compete for two cores in vain.
func (g *ground) forPacer(n int) int {
	switch {
	case g.often:
		return max(n, min(n+1, 3))
	case g.open:
		return max(n, 2)
	}
	return n
}

// split gives the first cores to the harness and the last ones to the stores.
func (g *ground) split(harness, own int, mode, reason string) results.Placement {
	n := len(g.cores)
	placement := results.Placement{
		Mode: mode, Harness: cores.Of(g.cores[:harness]...).String(), Stores: cores.Of(g.cores[n-own:]...).String(),
		Reason: reason,
	}
	placement.Procs = g.procsOn(harness)
	return placement
}

// procsOn is GOMAXPROCS on that many cores.
func (g *ground) procsOn(n int) int { return g.forPacer(min(g.procs, n)) }

// given is the placement that the user listed.
func (c Cores) given(g *ground) results.Placement {
	placement := results.Placement{
		Mode: codes.PlacedGiven, Harness: cores.Of(c.Harness...).String(), Stores: cores.Of(c.Stores...).String(),
		Reason: "asked for",
	}
	placement.Procs = g.procsOn(len(c.Harness))
	if len(c.Harness) == 0 {
		placement.Procs = g.shared("").Procs
	}
	if both := c.overlap(); len(both) > 0 {
		placement.Reason += fmt.Sprintf("; harness and stores share %s", both)
	}
	if _, ours := g.survey(); ours == 0 && placement.Stores != "" {
		placement.Stores = ""
		placement.Reason += "; the strategy needs no store that was started here"
	}
	return placement
}

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
func (p *placer) take(ctx context.Context, open bool, perSecond float64,
	names []string) (placement results.Placement, lift func()) {
	if p == nil {
		return results.Placement{Mode: codes.PlacedShared, Procs: runtime.GOMAXPROCS(0), Reason: "nothing is placed"},
			func() {}
	}
	g := &ground{open: open, often: open && perSecond > oftenAbove, cores: p.order, known: p.known, procs: p.procs}
	for _, name := range names {
		if store, ok := p.set.Get(name); ok {
			g.stores = append(g.stores, stores.PlaceOf(store))
		}
	}
	placement = p.asked.place(g)
	if p.refused == "" {
		lift, err := p.put(ctx, &placement)
		if err == nil {
			return placement, lift
		}
		p.refused = p.asked.String() + " was refused: " + err.Error()
	}
	placement = results.Placement{Mode: codes.PlacedShared, Procs: p.procs, Reason: p.refused}
	return placement, func() {}
}

// put applies a placement. If an error is returned all is as it was before the
// first pass.
func (p *placer) put(ctx context.Context, placement *results.Placement) (lift func(), err error) {
	if err := p.confineStores(ctx, placement.Stores); err != nil {
		return nil, errors.Join(err, p.confineStores(ctx, ""))
	}
	free := func() error { return nil }
	if placement.Harness != "" {
		set, err := cores.Parse(placement.Harness)
		if err == nil {
			free, err = cores.ConfineSelf(set)
		}
		if err != nil {
			return nil, errors.Join(err, p.confineStores(ctx, ""))
		}
	}
	if placement.Procs != p.procs || placement.Harness != "" {
		// Also if the number is the same: one that was set does not follow the cores.
		runtime.GOMAXPROCS(placement.Procs)
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
		set, err = cores.Parse(list)
		if err != nil {
			return err
		}
	}
	var errs []error
	for _, name := range p.set.Names() {
		store, _ := p.set.Get(name)
		if placed, ok := store.(stores.Placed); ok && placed.Place() == stores.StartedHere {
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
