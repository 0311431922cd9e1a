package cluster

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/results"
)

const (
	// historyDir is the folder, in the directory that a generator hands back, that has its histories. The record,
	// results.json, lies beside it.
	historyDir = "histories"
	// knownName is the file there that has what a generator knows of its runs besides.
	knownName = "known.json"
)

// known is what a generator knows of a run for the verdict on all generators.
type known struct {
	Label      string
	Repetition int
	// Ahead is how far its clock was ahead of the coordinator's, and Wrong by how much that may be wrong.
	Ahead, Wrong time.Duration
	// SyncPeriod is how long a round of jobs took at most.
	SyncPeriod time.Duration
	// Readings are what stores held at rest; the first generator has them.
	Readings []harness.Reading
}

// peers are the other generators, for the harness.
type peers struct {
	member *member

	mu    sync.Mutex
	known []known
}

var _ harness.Peers = (*peers)(nil)

func (p *peers) Run() string             { return p.member.RunID }
func (p *peers) Place() (number, of int) { return p.member.Index - 1, p.member.Of }

func (p *peers) Meet(ctx context.Context, step string) (time.Time, error) {
	return p.member.meet(ctx, step)
}

func (p *peers) Clock() (ahead, wrong time.Duration) {
	offset := p.member.bound()
	return time.Duration(offset.OffsetNS), time.Duration(offset.ErrorNS)
}

// Judged keeps what is known of a run.
func (p *peers) Judged(run *results.Run, facts *harness.Facts) {
	k := known{Label: run.Params.Label, Repetition: run.Repetition, Ahead: facts.ClockAhead, Wrong: facts.ClockWrong,
		SyncPeriod: facts.SyncPeriod}
	for _, pass := range facts.Readings {
		k.Readings = pass.List
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = append(p.known, k)
}

// write writes what is known to a directory.
func (p *peers) write(dir string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	data, err := json.Marshal(p.known)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, knownName), data, 0o644)
}
