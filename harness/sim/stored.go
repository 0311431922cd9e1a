package sim

import (
	"cmp"
	"context"
	"slices"

	"github.com/quotabench/quotabench/internal/memredis"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// present brings all Redis up to this moment, as a command would.
func (st *site) present() {
	for i, t := range st.tables {
		storeHook{w: st.w, table: t, to: st.redis[i]}.present()
	}
}

// count is what there is in all Redis; nothing if that is not known at once: a real server
// which may serve others too would have to be searched.
func (st *site) count(ctx context.Context) (u stores.Usage, err error) {
	if st.real == nil {
		return st.usage(ctx)
	}
	st.present() // the tables only know what expires there
	if c, ok := st.real.(stores.Counter); ok && stores.PlaceOf(st.real) == stores.StartedHere {
		return c.Count(ctx)
	}
	return u, nil
}

// usage is what there is in all Redis. What a table takes in memory is no statement about
// a Redis, so only a real one tells bytes.
func (st *site) usage(ctx context.Context) (u stores.Usage, err error) {
	st.present()
	if st.real != nil {
		return st.real.Usage(ctx, scope)
	}
	for _, t := range st.tables {
		u.Keys += int64(t.Len())
		u.WithoutTTL += t.WithoutTTL()
	}
	return u, nil
}

// keep records what is in Redis when the last request was issued.
func (p *pass) keep(ctx context.Context) error {
	if !needsRedis(p.sel) {
		return nil
	}
	u, err := p.st.usage(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	p.run.Stored = []results.Stored{results.NewStored(string(strategies.NeedRedis), p.subjects(), u.Keys, u.Bytes, p.overTime())}
	if extended := int64(0); len(p.st.tables) > 0 {
		for _, r := range p.st.tables {
			t, ok := r.(*memredis.Table)
			if !ok {
				return nil // miniredis does not count it
			}
			extended += t.Extended
		}
		p.run.Stored[0].Extended = &extended
	}
	return nil
}

// subjects is how many were set up or asked about.
func (p *pass) subjects() (n int64) {
	_, setUp := p.st.Instances[0].(strategies.Provisioner)
	for i := range p.d.truth.subjects {
		if s := &p.d.truth.subjects[i]; setUp || s.asked || s.initial != 0 {
			n++
		}
	}
	return n
}

// overTime is what the samples found at the quarters of the run; nil if the series
// has too few.
func (p *pass) overTime() (out []results.StoredAt) {
	length := cmp.Or(int64(p.cfg.Duration), p.d.lastEnd-p.d.epoch)
	samples := p.series.Samples
	if len(samples) < 2*results.Quarters || !slices.ContainsFunc(samples, func(x results.Sample) bool { return x.Keys > 0 }) {
		return nil
	}
	for q := range int64(results.Quarters - 1) {
		at := 0
		for i := range samples {
			if samples[i].AtNS <= length/results.Quarters*(q+1) {
				at = i
			}
		}
		x := &samples[at]
		out = append(out, results.StoredAt{AtNS: x.AtNS, Entries: x.Keys, WithoutTTL: x.KeysWithoutTTL, Bytes: x.Bytes})
	}
	return out
}
