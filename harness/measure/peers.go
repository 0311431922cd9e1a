package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/quota"
)

// meetGrace is how long peers wait for each other after Ctrl-C.
const meetGrace = 10 * time.Second

// meet waits for the peers, if there are any, at a step of the run under way.
// After Ctrl-C it waits for a while: they were stopped as well.
func (m *measurement) meet(ctx context.Context, step string) (time.Time, error) {
	if m.cfg.Peers == nil {
		return time.Time{}, nil
	}
	wait, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(meetGrace, cancel) })()
	at, err := m.cfg.Peers.Meet(wait, fmt.Sprintf("%s of run %d", step, m.begun))
	if err != nil {
		err = fmt.Errorf("wait for the other processes: %w", err)
	}
	return at, err
}

// lose ends a measurement with peers if a run of it has failed: the others go on at a
// step that this one would not come to.
func (m *measurement) lose(err error) {
	if m.cfg.Peers != nil && m.end != nil {
		m.end(err)
	}
}

// begin waits for the moment at which all peers begin.
func (p *pass) begin(ctx context.Context) error {
	if p.began.IsZero() {
		return nil
	}
	return clock.Wall{}.Sleep(ctx,
		p.began.Add(p.measurement.ahead).Sub(p.measurement.timebase.time(p.measurement.timebase.nano())))
}

// lateAt is by how much later than its peers a process may begin without its timings
// being of another time than theirs.
const lateAt = 20 * time.Millisecond

// auditBegin asks whether this process began with its peers.
func (p *pass) auditBegin() {
	if p.began.IsZero() {
		return
	}
	if late := p.measurement.timebase.time(p.drive.epoch).Sub(p.began.Add(p.measurement.ahead)); late > lateAt {
		p.discard("began-late", codes.DiscardsRound, "it began %v later than the others", late.Round(time.Millisecond))
	}
}

// bound is how far this process' clock counts as ahead, and by how much that may be wrong
// after all that was measured.
func (m *measurement) bound() (ahead, wrong time.Duration) {
	if m.cfg.Peers == nil {
		return 0, 0
	}
	now, wrong := m.cfg.Peers.Clock()
	return m.ahead, wrong + max(now-m.ahead, m.ahead-now)
}

// ours puts windows that go by the peers' clock on this process'.
func (m *measurement) ours(window *quota.Window) {
	if window.Timeline != (quota.Timeline{}) {
		window.Timeline.Real = window.Timeline.Real.Add(m.ahead)
	}
}
