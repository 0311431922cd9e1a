package tiered

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// row is one agent's: a count and a limit per kind of use.
type row struct{ used, limit [useCount]int64 }

// defaultLimits are those of the table's columns, in the order of uses.
var defaultLimits = [useCount]int64{1_000, 500_000, 100, 10_737_418_240}

// table is read and written inside statements of the model only, which run one
// at a time.
type table map[quota.Subject]*row

type modelSource struct {
	model *strategies.Model
	rows  table
	// past is kept for a replica; nil if there is none.
	past *past
	// as ends the reads of a replica, which sees the past; empty for the source itself.
	as string
}

func openModel(env strategies.Env) source {
	rows := strategies.SharedValue(env.Shared, "tiered.quotas", func() table { return table{} })
	return &modelSource{model: env.Model, rows: rows}
}

func (m *modelSource) tier() quota.Tier { return quota.TierModel }

func (m *modelSource) follow(context.Context) error { return nil }

// do runs f as one statement that needs the column of counts.
func (m *modelSource) do(ctx context.Context, sql string, u *use, f func() error) error {
	return m.model.Do(ctx, sql, func() error {
		if u.misnamed() {
			return fmt.Errorf("column %s does not exist: %w", u.usedColumn, strategies.ErrPrescribed)
		}
		return f()
	})
}

// count runs f on an agent's row as one statement that needs the column of counts.
func (m *modelSource) count(ctx context.Context, sql string, u *use, subject quota.Subject, f func(*row)) error {
	return m.do(ctx, sql, u, func() error { return m.find(subject, f) })
}

func (m *modelSource) find(subject quota.Subject, f func(*row)) error {
	r, ok := m.rows[subject]
	if m.as != "" {
		var was row
		was, ok = m.past.seen(subject)
		r = &was
	}
	if !ok {
		return errNoAgent
	}
	f(r)
	return nil
}

func (m *modelSource) check(ctx context.Context, u *use, subject quota.Subject) (hasRoom bool, err error) {
	err = m.count(ctx, "SELECT check_quota"+m.as, u, subject, func(r *row) {
		hasRoom = r.used[u.index] < r.limit[u.index]
	})
	return hasRoom, err
}

func (m *modelSource) used(ctx context.Context, u *use, subject quota.Subject) (n int64, err error) {
	err = m.count(ctx, "SELECT "+u.usedColumn+m.as, u, subject, func(r *row) { n = r.used[u.index] })
	return n, err
}

func (m *modelSource) limit(ctx context.Context, u *use, subject quota.Subject) (n int64, err error) {
	err = m.model.Do(ctx, "SELECT "+u.limitColumn+m.as, func() error {
		return m.find(subject, func(r *row) { n = r.limit[u.index] })
	})
	return n, err
}

// charge is one statement here: the model has no transactions, and no caller could
// see this one's inside.
func (m *modelSource) charge(ctx context.Context, u *use, subject quota.Subject, units int64) (n int64, err error) {
	err = m.count(ctx, "UPDATE quotas ADD "+u.usedColumn, u, subject, func(r *row) {
		r.used[u.index] += units
		n = r.used[u.index]
		m.past.note(subject, r)
	})
	return n, err
}

func (m *modelSource) writeBack(ctx context.Context, u *use, items []writeBack) ([]writeBack, error) {
	// A batch travels and is committed as one.
	err := m.do(ctx, "UPDATE quotas SET "+u.usedColumn, u, func() error {
		for _, back := range items {
			// Like an UPDATE, it does nothing if there is no row.
			if row, ok := m.rows[back.subject]; ok {
				row.used[u.index] = back.count
				m.past.note(back.subject, row)
			}
		}
		return nil
	})
	if err != nil {
		return items, err
	}
	return nil, nil
}

func (m *modelSource) counts(ctx context.Context, u *use) (all []strategies.Grant, err error) {
	err = m.do(ctx, "SELECT ALL "+u.usedColumn, u, func() error {
		for _, subject := range slices.Sorted(maps.Keys(m.rows)) {
			all = append(all, strategies.Grant{Subject: subject, Limit: m.rows[subject].limit[u.index],
				Used: m.rows[subject].used[u.index]})
		}
		return nil
	})
	return all, err
}

func (m *modelSource) reset(ctx context.Context, u *use) (agents []quota.Subject, err error) {
	err = m.do(ctx, "UPDATE quotas RESET "+u.usedColumn, u, func() error {
		agents = slices.Sorted(maps.Keys(m.rows))
		for _, subject := range agents {
			row := m.rows[subject]
			row.used[u.index] = 0
			m.past.note(subject, row)
		}
		return nil
	})
	return agents, err
}

func (m *modelSource) provision(ctx context.Context, u *use, grants []strategies.Grant) error {
	return m.do(ctx, "INSERT INTO quotas", u, func() error {
		for _, grant := range grants {
			r, ok := m.rows[grant.Subject]
			if !ok {
				r = &row{limit: defaultLimits}
				m.rows[grant.Subject] = r
			}
			r.used[u.index], r.limit[u.index] = grant.Used, grant.Limit
			m.past.begin(grant.Subject, r)
		}
		return nil
	})
}

func (m *modelSource) setLimit(ctx context.Context, u *use, agents []quota.Subject, limit int64) error {
	return m.do(ctx, "UPDATE quotas SET "+u.limitColumn, u, func() error {
		for _, subject := range agents {
			if row, ok := m.rows[subject]; ok {
				row.limit[u.index] = limit
				m.past.note(subject, row)
			}
		}
		return nil
	})
}

// past is what rows were, as far back as a replica's lag needs it. It is read and
// written inside statements of the model only. A nil past keeps nothing.
type past struct {
	clock quota.Clock
	lag   int64 // nanoseconds
	rows  map[quota.Subject][]version
}

// version is a row from a moment on, in nanoseconds since 1970.
type version struct {
	at int64
	row
}

// begin forgets the past of a row: an operator's set-up is there before the first
// request, on the replica too.
func (p *past) begin(subject quota.Subject, r *row) {
	if p != nil {
		p.rows[subject] = append(p.rows[subject][:0], version{math.MinInt64, *r})
	}
}

// note keeps what a row has become.
func (p *past) note(subject quota.Subject, r *row) {
	if p == nil {
		return
	}
	now := p.clock.Now().UnixNano()
	list := p.rows[subject]
	if n := len(list); n > 0 {
		now = max(now, list[n-1].at) // the clock of another instance may be ahead
	}
	for len(list) > 1 && list[1].at <= now-p.lag {
		list = list[1:]
	}
	p.rows[subject] = append(list, version{now, *r})
}

// seen is the row as the replica has it now; ok is false if it has none yet.
func (p *past) seen(subject quota.Subject) (r row, ok bool) {
	until := p.clock.Now().UnixNano() - p.lag
	for _, version := range p.rows[subject] {
		if version.at > until {
			break
		}
		r = version.row
		ok = true
	}
	return r, ok
}

// replica makes a replica, and the source keep the past that it needs: each statement of
// the replica sees the rows as they were a fixed time before. A real one is late by what
// its network and its primary's load make it. Instances share the past as they share the
// rows.
func (m *modelSource) replica(env strategies.Env) reader {
	m.past = &past{
		clock: env.Clock, lag: int64(env.Options.Duration("replica-lag")),
		rows: strategies.SharedValue(env.Shared, "tiered.past", func() map[quota.Subject][]version {
			return map[quota.Subject][]version{}
		}),
	}
	late := *m
	late.as = " (replica)"
	return &late
}

// followEvery is how often a replica is asked how far it has come.
const followEvery = 2 * time.Millisecond
