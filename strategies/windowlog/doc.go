// Package windowlog holds the strategies that keep a row in PostgreSQL for every
// admitted request and count the rows of the window, as ProjectEPU limits receipt
// e-mails and guest messages, and as the relational store would that ADR-009
// turned down for tracking hits.
//
// sql-window-log counts, and then inserts: callers who count the same rows are all
// admitted. sql-window-log-atomic does both in one transaction that no other of the
// same subject overlaps with.
//
// Rows carry the moment of the request by the application's clock. If windows
// follow each other they carry the window's number too, so a window begins
// with nothing.
package windowlog

import (
	"context"
	"embed"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
	"github.com/quotabench/quotabench/strategies/internal/family"
)

//go:embed notes.md
var files embed.FS

// table is what sql/schema.sql makes.
const table = "quota_log"

var (
	//go:embed sql/schema.sql
	sqlSchema string
	//go:embed sql/count.sql
	sqlCount string
	//go:embed sql/insert.sql
	sqlInsert string
	//go:embed sql/provision.sql
	sqlProvision string
	//go:embed sql/lock.sql
	sqlLock string
)

// meta completes what both strategies have in common.
func meta(m strategies.Meta) strategies.Meta {
	m.Needs = []strategies.Need{strategies.NeedPostgres}
	m.Excluded = family.NotSimulated
	m.Kinds = []quota.Kind{quota.Rolling, quota.Fixed, quota.CalendarMonth, quota.CalendarDay, quota.CalendarHour}
	m.Serves = unitsOnly
	m.Counts = quota.CountsAdmitted
	m.Record = ofDesignRecord
	return m
}

// unitsOnly refuses policies whose requests ask for several units: a row is one.
func unitsOnly(policy *quota.Policy) error {
	return family.CostsAtMost(1, policy, ", and a row of the log stands for one")
}

// log is the table of one run, as both strategies use it.
type log struct {
	pool  *pgxpool.Pool
	clock quota.Clock
}

func openLog(ctx context.Context, env strategies.Env) (log, error) {
	pool, err := family.Table(ctx, env, table, sqlSchema)
	return log{pool: pool, clock: env.Clock}, err
}

// view is a window as a request sees it: which rows count, and what an admitted
// one writes.
type view struct {
	index      int64
	now, since int64 // in nanoseconds since 1970; rows after since count
	end        time.Time
}

func look(policy *quota.Policy, now time.Time) view {
	if policy.Window.Kind == quota.Rolling {
		return view{now: now.UnixNano(), since: now.Add(-policy.Window.RealLength()).UnixNano()}
	}
	span := policy.Window.At(now)
	return view{index: span.Index, now: now.UnixNano(), since: math.MinInt64, end: span.End}
}

// count returns how many rows of the window there are.
func (v view) count(ctx context.Context, on family.DB, subject quota.Subject,
	policy *quota.Policy) (n int64, err error) {
	n, _, err = family.Row(ctx, on, sqlCount, string(subject), policy.Name, v.index, v.since)
	return n, family.Wrapf(err, "count the window's rows")
}

// admit counts the rows, and adds one if the limit leaves room for it.
func (v view) admit(ctx context.Context, on family.DB, req quota.Request) (quota.Decision, error) {
	policy := req.Policy
	n, err := v.count(ctx, on, req.Subject, policy)
	if err != nil {
		return quota.Decision{}, err
	}
	decision := quota.Decision{Tier: quota.TierPostgres, Remaining: max(policy.Limit-n, 0)}
	if n >= policy.Limit {
		if !v.end.IsZero() {
			decision.RetryAfter = v.end.Sub(time.Unix(0, v.now))
		}
		return decision, nil
	}
	if _, err := on.Exec(ctx, sqlInsert, string(req.Subject), policy.Name, v.index, v.now); err != nil {
		return quota.Decision{}, fmt.Errorf("insert a row: %w", err)
	}
	decision.Admitted = true
	decision.Remaining = decision.Remaining - 1
	return decision, nil
}

// Used implements strategies.Viewer.
func (l *log) Used(ctx context.Context, subject quota.Subject, policy *quota.Policy) ([]quota.Reading, error) {
	n, err := look(policy, l.clock.Now()).count(ctx, l.pool, subject, policy)
	if err != nil {
		return nil, err
	}
	return []quota.Reading{{Tier: quota.TierPostgres, Units: n, Known: true}}, nil
}

// Provision writes as many rows as units are used, of the present moment. Rows of
// the subjects that are there are removed.
func (l *log) Provision(ctx context.Context, policy *quota.Policy, grants []strategies.Grant) error {
	if err := family.OneLimit(policy, grants); err != nil {
		return err
	}
	subjects, _, used := family.Columns(grants)
	view := look(policy, l.clock.Now())
	_, err := l.pool.Exec(ctx, sqlProvision, policy.Name, subjects, used, view.index, view.now)
	return family.Wrapf(err, "provision %d subjects", len(grants))
}

// Close implements strategies.Strategy; there is nothing to release.
func (l *log) Close(context.Context) error { return nil }
