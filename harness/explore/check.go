package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/internal/sched"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// breach is a property that does not hold where a schedule has got to.
type breach struct {
	property Property
	detail   string
	// units by which it is broken, where it has any.
	units int64
}

// normal is what the strategy leaves behind where the clients come one after the
// other and nothing fails: what is so then is its design and no finding.
type normal struct {
	immortal map[string]bool
	negative bool
}

// check finds what is broken at this moment.
func (w *world) check(n *normal, wanted map[Property]bool) ([]breach, error) {
	var out []breach
	leak := w.truth.leak()
	if wanted[Leak] && leak > 0 {
		out = append(out, breach{Leak, fmt.Sprintf("%d %s in use, the limit is %d", w.truth.peak, w.cfg.Policy.Unit, w.cfg.Policy.Limit), leak})
		if w.truth.crossed {
			out[len(out)-1].detail = fmt.Sprintf("%d %s over the limit of %d in one window", leak, w.cfg.Policy.Unit, w.cfg.Policy.Limit)
		}
	}
	atRest, stuck := w.atRest()
	if wanted[Stuck] && len(stuck) > 0 {
		out = append(out, breach{Stuck, strings.Join(stuck, "; "), 0})
	}
	if wanted[Forgotten] && !w.truth.crossed && w.truth.inUse >= w.cfg.Policy.Limit {
		for _, in := range w.instances {
			if in.forgot {
				out = append(out, breach{Forgotten, fmt.Sprintf("instance %d has forgotten who has %d of %d %s in use",
					in.index, w.truth.inUse, w.cfg.Policy.Limit, w.cfg.Policy.Unit), 0})
				break
			}
		}
	}
	if wanted[Guarantee] && (leak > 0 || atRest && w.truth.rejected > 0) {
		out = w.checkGuarantee(out)
	}
	if wanted[Negative] && !n.negative || atRest {
		var err error
		if out, err = w.checkStore(out, n, wanted, atRest); err != nil {
			return nil, err
		}
	}
	if !atRest {
		return out, nil
	}
	if wanted[FalseReject] && w.truth.rejected > 0 {
		if v := w.truth.judge(); v.FalseRejects > 0 {
			out = append(out, breach{FalseReject, fmt.Sprintf("%d of %d rejections had room at every moment of them",
				v.FalseRejects, v.Rejected.Requests), v.FalseRejectUnits})
		}
	}
	if wanted[Drift] || wanted[Stranded] {
		return w.checkCounts(out, wanted)
	}
	return out, nil
}

// atRest reports whether no call is in flight and no job has anything to do, and
// who waits for ever.
func (w *world) atRest() (rest bool, stuck []string) {
	rest = true
	able := false
	for _, m := range w.actors {
		if m.Done() {
			continue
		}
		op := m.Op()
		switch {
		case op.Kind == sched.Start:
			able = true // a request that has not come is not in flight
		case m.client != nil && op.Kind == sched.Wait && m.client.pending < 0:
			able = true // between two of its actions
		case m.client == nil && op.Kind == sched.Idle:
			if m.Ready() {
				rest, able = false, true
			}
		default:
			rest = false
			if m.Ready() || op.Kind == sched.Sleep {
				able = true
			} else {
				stuck = append(stuck, m.String())
			}
		}
	}
	if able {
		stuck = nil
	}
	return rest, stuck
}

// checkGuarantee holds the strategy to the clauses that speak about this policy
// and about what has happened.
func (w *world) checkGuarantee(out []breach) []breach {
	if len(w.sel.Guarantee) == 0 {
		return out
	}
	v := w.truth.judge()
	params := quota.Params{
		Limit: w.cfg.Policy.Limit, MaxCost: v.MaxCost, InFlight: v.MaxInFlight, Instances: int64(w.cfg.Instances),
		Offered: v.MaxOffered, SyncPeriod: w.used.synced,
		Policy: &w.cfg.Policy, Options: w.sel.Options,
	}
	happened := w.happened()
	for _, c := range w.sel.Guarantee {
		if !c.Applies(w.cfg.Policy.Window.Kind) || slices.ContainsFunc(happened, func(f quota.Fault) bool { return !slices.Contains(c.Tolerates, f) }) {
			continue
		}
		units := v.LeakWorst
		if c.Property == quota.PropertyFalseReject {
			units = v.FalseRejectWorst
		}
		if bound := c.Bound(params); units > bound {
			out = append(out, breach{Guarantee, fmt.Sprintf("%s of %d units, and at most %d are declared (%s)", c.Property, units, bound, c.Formula), units - bound})
		}
	}
	return out
}

// happened lists the faults of this schedule so far.
func (w *world) happened() []quota.Fault {
	var out []quota.Fault
	u := w.used
	for _, x := range []struct {
		n int
		f quota.Fault
	}{
		{u.crash, quota.FaultCrash}, {u.lost, quota.FaultLostReply}, {u.retry, quota.FaultRetry},
		{u.tick, quota.FaultClock}, {u.evict, quota.FaultEviction}, {u.outage, quota.FaultOutage},
	} {
		if x.n > 0 {
			out = append(out, x.f)
		}
	}
	return out
}

func (w *world) checkStore(out []breach, n *normal, wanted map[Property]bool, atRest bool) ([]breach, error) {
	w.s.Sync()
	keys, err := w.store.keys(w.s.Now())
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if wanted[TTL] && atRest && k.left == 0 && !n.immortal[k.name] {
			out = append(out, breach{TTL, k.name + " never expires", 0})
		}
		if wanted[Negative] && !n.negative && k.negative() {
			out = append(out, breach{Negative, fmt.Sprintf("%s holds %s", k.name, strings.Join(k.content, " ")), 0})
		}
	}
	return out, nil
}

// checkCounts holds what the tiers say against the truth.
func (w *world) checkCounts(out []breach, wanted map[Property]bool) ([]breach, error) {
	view, ok := w.viewer()
	if !ok || w.sel.Counts == quota.CountsNothing {
		return out, nil
	}
	readings, err := view.Used(context.Background(), subject, &w.cfg.Policy)
	if err != nil {
		return out, nil //nolint:nilerr // a strategy that cannot say is no schedule that drifts
	}
	expected, held, err := w.truth.explained(w.sel.Counts)
	if err != nil {
		return nil, err
	}
	for _, r := range readings {
		if !r.Known {
			// A record that was never made, or has expired, stands for 0 where there
			// was nothing to record.
			continue
		}
		if d := expected.Distance(r.Units); wanted[Drift] && d != 0 {
			out = append(out, breach{Drift, fmt.Sprintf("%s says %d, it must be %s", r.Tier, r.Units, intervalText(expected)), d})
		}
		if over := r.Units - held.Hi; wanted[Stranded] && over > 0 {
			out = append(out, breach{Stranded, fmt.Sprintf("%s says %d, callers hold %s", r.Tier, r.Units, intervalText(held)), over})
		}
	}
	return out, nil
}

func (w *world) viewer() (strategies.Viewer, bool) {
	v, ok := w.instances[0].strategy.(strategies.Viewer)
	return v, ok
}

func intervalText(i oracle.Interval) string {
	if i.Lo == i.Hi {
		return fmt.Sprint(i.Lo)
	}
	return fmt.Sprintf("%d to %d", i.Lo, i.Hi)
}

// baseline runs the clients one after the other, with nothing going wrong, and
// the jobs they wake.
func (w *world) baseline() (*normal, error) {
	n := &normal{immortal: map[string]bool{}}
	if err := w.begin(); err != nil {
		return nil, err
	}
	defer w.end()
	for range maxSerialSteps {
		c, ok := w.serial()
		if !ok {
			break
		}
		if err := w.apply(c); err != nil {
			return nil, err
		}
		w.s.Sync()
		keys, err := w.store.keys(w.s.Now())
		if err != nil {
			return nil, err
		}
		rest, _ := w.atRest()
		for _, k := range keys {
			n.immortal[k.name] = n.immortal[k.name] || rest && k.left == 0
			n.negative = n.negative || k.negative()
		}
	}
	return n, nil
}

// maxSerialSteps is far more than a few clients need.
const maxSerialSteps = 10_000

// serial is the next step where nobody gets in anybody's way: of a client that is
// under way, else of a job, else of the next client.
func (w *world) serial() (choice, bool) {
	best, rank := choice{}, 0
	for id, m := range w.actors {
		if m.Done() || !m.Ready() {
			continue
		}
		r := 2
		switch {
		case m.client != nil && m.Op().Kind == sched.Start:
			r = 1
		case m.client != nil:
			r = 3
		}
		if r > rank {
			best, rank = choice{kind: stepActor, id: id}, r
		}
	}
	return best, rank > 0
}

// unserved reports why TTL findings are left out, for policies without an end.
func hasEnd(p *quota.Policy) bool { return p.Window.Kind != quota.Standing }
