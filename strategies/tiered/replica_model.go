package tiered

import (
	"math"
	"time"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

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
func (p *past) begin(s quota.Subject, r *row) {
	if p != nil {
		p.rows[s] = append(p.rows[s][:0], version{math.MinInt64, *r})
	}
}

// note keeps what a row has become.
func (p *past) note(s quota.Subject, r *row) {
	if p == nil {
		return
	}
	now := p.clock.Now().UnixNano()
	list := p.rows[s]
	if n := len(list); n > 0 {
		now = max(now, list[n-1].at) // the clock of another instance may be ahead
	}
	for len(list) > 1 && list[1].at <= now-p.lag {
		list = list[1:]
	}
	p.rows[s] = append(list, version{now, *r})
}

// seen is the row as the replica has it now; ok is false if it has none yet.
func (p *past) seen(s quota.Subject) (r row, ok bool) {
	until := p.clock.Now().UnixNano() - p.lag
	for _, v := range p.rows[s] {
		if v.at > until {
			break
		}
		r, ok = v.row, true
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
