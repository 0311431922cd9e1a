package measure

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// plannedPeers are peers of which this process is one, and which are at every step at once.
type plannedPeers struct {
	number, of   int
	ahead, wrong time.Duration
	judged       []*harness.Facts
}

func (p *plannedPeers) Run() string             { return "abc" }
func (p *plannedPeers) Place() (number, of int) { return p.number, p.of }
func (p *plannedPeers) Meet(context.Context, string) (time.Time, error) {
	return time.Time{}, nil
}
func (p *plannedPeers) Clock() (ahead, wrong time.Duration)     { return p.ahead, p.wrong }
func (p *plannedPeers) Judged(_ *results.Run, f *harness.Facts) { p.judged = append(p.judged, f) }

// TestPeersBeginTogether: one that begins later than the others by more than 20 ms has no timings that count.
// Its clock's offset is no delay.
func TestPeersBeginTogether(t *testing.T) {
	at := time.Unix(1000, 0)
	for late, counts := range map[time.Duration]bool{0: true, 20 * time.Millisecond: true, 21 * time.Millisecond: false} {
		tb := &timebase{time: func(ns int64) time.Time { return at.Add(time.Duration(ns)) }}
		p := &pass{measurement: &measurement{timebase: tb, ahead: 5 * time.Second},
			drive: &drive{epoch: int64(5*time.Second + late)}, began: at, run: &results.Run{}}
		p.auditBegin()
		if p.run.Audit.Planned() != counts || p.run.Audit.Has("began-late") == counts {
			t.Errorf("%v late: %+v", late, p.run.Audit)
		}
	}
}

// TestPeersClockBounds: the offset that counts is the one that the run began with, and the bound covers what was
// measured later.
func TestPeersClockBounds(t *testing.T) {
	cfg := Config{Plan: harness.Plan{Surroundings: harness.Surroundings{Peers: &plannedPeers{of: 2, ahead: 100,
		wrong: 30}}}}
	for set, want := range map[time.Duration]time.Duration{100: 30, 90: 40, 120: 50} {
		m := measurement{cfg: &cfg, ahead: set}
		if ahead, wrong := m.bound(); ahead != set || wrong != want {
			t.Errorf("%d ± %d, should be %d ± %d", ahead, wrong, set, want)
		}
	}
	m := measurement{cfg: &cfg, ahead: time.Minute}
	cfg.Policy.Window = quota.Window{Kind: quota.Fixed, Length: time.Hour}
	now := time.Unix(5000, 0)
	if p := m.from(now); !p.Window.Timeline.Real.Equal(now.Add(time.Minute)) ||
		!p.Window.Timeline.Policy.Equal(cfg.Policy.Window.At(now).Start) {
		t.Errorf("windows of %+v", p.Window.Timeline)
	}
}

// TestPeersKnowWhatWasFilled: one fills subjects for all, and reads the counters for all. What the others keep says
// what was there, too.
func TestPeersKnowWhatWasFilled(t *testing.T) {
	for number := range 2 {
		others := &plannedPeers{number: number, of: 2}
		p := &planted{drift: 2}
		dir := t.TempDir()
		r := measureOne(t, p, "steady", func(c *Config) {
			c.Stream.Options = map[string]string{"subjects": "4", "fill": "0.5", "over-quota": "0"}
			c.Load = harness.Closed()
			c.Requests = 12
			c.Policy.Limit = 10
			c.Archive = dir
			c.Peers = others
		})
		f, err := oracle.OpenHistory(filepath.Join(dir, r.HistoryName()))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		seen := 0
		for s, units := range f.Header.Initial {
			seen++
			if units != 5 {
				t.Errorf("process %d: subject %d began with %d units", number, s, units)
			}
		}
		filled := int64(0) // and taken
		for name, used := range p.used {
			if !strings.HasPrefix(string(name), "warm-up") {
				filled += used
			}
		}
		read := len(others.judged) == 1 && len(others.judged[0].Readings) > 0
		if first := number == 0; seen == 0 || r.Issued != 6 || (filled >= 20) != first || read != first || r.Drift != nil {
			t.Errorf("process %d: %d subjects began with something, %d units in use after %d requests, read %t, drift %+v",
				number, seen, filled,
				r.Issued, read, r.Drift)
		}
	}
}

// TestPeersTakeTurns: the operations of all peers are those of the stream, each once.
func TestPeersTakeTurns(t *testing.T) {
	seen := map[int64]int{}
	for place := range int64(3) {
		d := &drive{place: place, peers: 3}
		for i := range int64(4) {
			seen[d.number(i)]++
		}
	}
	for n := range int64(12) {
		if seen[n] != 1 {
			t.Errorf("operation %d is that of %d processes", n, seen[n])
		}
	}
	if n := new(drive).number(5); n != 5 {
		t.Errorf("alone, operation 5 is number %d", n)
	}
}
