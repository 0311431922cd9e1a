package hardened

import (
	"context"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

// tables are those of the schema, read and written inside statements of the model
// only, which run one at a time.
type tables struct {
	limits  map[[2]string]int64
	usage   map[rowKey]*usage
	settled map[requestKey]*reservation
	regions map[string]bool
	// asked are the recalled ones of usage.
	asked map[rowKey]*usage
}

type rowKey struct {
	subject quota.Subject
	policy  string
	window  int64
}

type requestKey struct {
	rowKey
	request uint64
}

type usage struct {
	drawn int64
	ends  int64 // in nanoseconds since 1970; 0 is never
	// holders are the draws of regions that may hold credit.
	holders  map[string]int64
	recalled bool
}

type reservation struct {
	held, ends int64
	closed     bool
}

type modelSource struct {
	model  *strategies.Model
	tables *tables
}

func openModel(env strategies.Env) source {
	return &modelSource{env.Model, strategies.SharedValue(env.Shared, "escrow", func() *tables {
		return &tables{limits: map[[2]string]int64{}, usage: map[rowKey]*usage{}, settled: map[requestKey]*reservation{},
			regions: map[string]bool{}, asked: map[rowKey]*usage{}}
	})}
}

func (m *modelSource) tier() quota.Tier { return quota.TierModel }

func (a *account) row() rowKey { return rowKey{a.subject, a.policy, a.window} }

func (a *account) endNano() int64 {
	if a.ends.IsZero() {
		return 0
	}
	return a.ends.UnixNano()
}

func (m *modelSource) draw(ctx context.Context, a *account, w want) (d drawn, err error) {
	err = family.Statement(ctx, m.model, "SELECT escrow_draw", func() {
		limit, ok := m.tables.limits[[2]string{string(a.subject), a.policy}]
		if !ok {
			limit = a.limit
		}
		u := m.tables.usage[a.row()]
		if u == nil {
			u = &usage{ends: a.endNano()}
			m.tables.usage[a.row()] = u
		}
		d = m.tables.draw(u, limit, w)
		m.tables.ask(a.row(), u)
	})
	return d, err
}

// ask keeps the index of recalled rows.
func (t *tables) ask(k rowKey, u *usage) {
	if u.recalled {
		t.asked[k] = u
	} else {
		delete(t.asked, k)
	}
}

func (t *tables) draw(u *usage, limit int64, w want) (d drawn) {
	d.several = w.region != "" && len(t.regions) > 1
	d.left = max(limit-u.drawn, 0)
	if d.left == 0 {
		u.recalled = u.recalled || d.several && len(u.holders) > 0
		return d
	}
	if d.several && !w.whole && d.left <= w.near {
		w.units = w.batch
		w.whole = d.left < w.least
	}
	if w.whole && d.left < w.units {
		return d
	}
	d.granted = min(d.left, w.units)
	u.drawn += d.granted
	d.left -= d.granted
	if w.region == "" || w.whole {
		return d
	}
	if u.holders == nil {
		u.holders = map[string]int64{}
	}
	u.holders[w.region]++
	u.recalled = u.recalled || d.several && d.left <= w.near && len(u.holders) > 1
	return d
}

func (m *modelSource) settle(ctx context.Context, a *account, request uint64, taken, held int64, closed bool) error {
	return family.Statement(ctx, m.model, "SELECT escrow_settle", func() {
		k := requestKey{a.row(), request}
		h := m.tables.settled[k]
		if h == nil {
			h = &reservation{held: taken, ends: a.endNano()}
			m.tables.settled[k] = h
		}
		if h.closed {
			return
		}
		if usage := m.tables.usage[k.rowKey]; usage != nil {
			usage.drawn = max(usage.drawn+held-h.held, 0)
		}
		h.held, h.closed, h.ends = held, closed, a.endNano()
	})
}

func (m *modelSource) drawn(ctx context.Context, a *account) (units int64, known bool, err error) {
	err = family.Statement(ctx, m.model, "SELECT drawn", func() {
		if usage := m.tables.usage[a.row()]; usage != nil {
			units = usage.drawn
			known = true
		}
	})
	return units, known, err
}

func (m *modelSource) provision(ctx context.Context, a *account, grants []strategies.Grant) error {
	return family.Statement(ctx, m.model, "INSERT INTO escrow_limits, escrow_usage", func() {
		for _, grant := range grants {
			own := *a
			own.subject = grant.Subject
			m.tables.limits[[2]string{string(grant.Subject), a.policy}] = grant.Limit
			m.tables.usage[own.row()] = &usage{drawn: grant.Used, ends: a.endNano()}
			delete(m.tables.asked, own.row())
		}
	})
}

func (m *modelSource) purge(ctx context.Context, before time.Time) (changed bool, err error) {
	err = family.Statement(ctx, m.model, "DELETE FROM escrow_usage, escrow_settled", func() {
		until := before.UnixNano()
		for k, usage := range m.tables.usage {
			if usage.ends != 0 && usage.ends < until {
				delete(m.tables.usage, k)
				delete(m.tables.asked, k)
				changed = true
			}
		}
		for k, hold := range m.tables.settled {
			if hold.ends != 0 && hold.ends < until {
				delete(m.tables.settled, k)
				changed = true
			}
		}
	})
	return changed, err
}

func (m *modelSource) setLimit(ctx context.Context, policy string, agents []quota.Subject, units int64) error {
	return family.Statement(ctx, m.model, "INSERT INTO escrow_limits", func() {
		for _, subject := range agents {
			m.tables.limits[[2]string{string(subject), policy}] = units
		}
	})
}
