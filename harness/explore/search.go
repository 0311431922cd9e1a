package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quotabench/quotabench/strategies"
)

// start is the first moment of every exploration: in the middle of a month, a day
// and an hour, so that no window is about to end.
var start = time.Date(2026, time.November, 20, 10, 30, 0, 0, time.UTC)

// ErrNotDeterministic says that a strategy took another way in the second run of
// one schedule: it depends on something that the explorer does not control.
var ErrNotDeterministic = errors.New("strategy not deterministic")

// Run searches for the shortest schedule that breaks each property. It returns
// with what it has when ctx is done. An error means that it could not search.
func Run(ctx context.Context, sel strategies.Selection, cfg Config) (*Result, error) {
	cfg, err := cfg.complete(sel)
	if err != nil {
		return nil, err
	}
	if OnPostgres(sel) {
		return runPostgres(ctx, sel, cfg)
	}
	return explored(sel, cfg, func(w *world) (*Result, error) { return w.search(ctx) })
}

// node is a state that was reached, by the step that led to it.
type node struct {
	parent int32
	depth  int32
	choice choice
	next   []choice
	// histories of all actors; what leads here need not be hashed once more.
	histories []digest
}

// search is a breadth-first walk over states. Nothing is kept of a state but how
// to get there: every edge is a run of its own from the start.
func (w *world) search(ctx context.Context) (*Result, error) {
	n, err := w.baseline()
	if err != nil {
		return nil, err
	}
	res := w.newResult()
	wanted := map[Property]bool{}
	for _, p := range w.cfg.Properties {
		wanted[p] = p != TTL || hasEnd(&w.cfg.Policy)
	}
	if err := w.begin(); err != nil {
		return nil, err
	}
	root, err := w.state()
	if err != nil {
		return nil, err
	}
	nodes := []node{{parent: -1, next: w.enabled(nil, true), histories: w.histories()}}
	seen := map[digest]struct{}{root: {}}
	w.seen = seen
	w.end()
	var path []choice
	for at := 0; at < len(nodes) && len(wanted) > 0; at++ {
		for _, c := range nodes[at].next {
			if ctx.Err() != nil {
				res.Capped, res.States = "interrupted", len(nodes)
				return w.finish(res)
			}
			path = append(pathTo(nodes, at, path[:0]), c)
			if err := w.goOn(path, nodes[at].histories); err != nil {
				return nil, err
			}
			res.Runs++
			res.Depth = max(res.Depth, len(path))
			found, err := w.check(n, wanted)
			if err != nil {
				return nil, err
			}
			for _, b := range found {
				if wanted[b.property] {
					delete(wanted, b.property)
					res.Findings = append(res.Findings, w.finding(b, path))
				}
			}
			hash, err := w.state()
			if err != nil {
				return nil, err
			}
			if _, old := seen[hash]; old {
				res.Pruned++
				w.end()
				continue
			}
			seen[hash] = struct{}{}
			nodes = append(nodes, node{parent: int32(at), depth: int32(len(path)), choice: c, next: w.enabled(nil, true), histories: w.histories()})
			w.end()
			if len(nodes) >= w.cfg.MaxStates {
				res.Capped = fmt.Sprintf("%d states", len(nodes))
				res.States = len(nodes)
				return w.finish(res)
			}
		}
		nodes[at].next, nodes[at].histories = nil, nil
	}
	res.States = len(nodes)
	return w.finish(res)
}

// pathTo appends the steps to nodes[at] to buf.
func pathTo(nodes []node, at int, buf []choice) []choice {
	for at != 0 {
		buf = append(buf, nodes[at].choice)
		at = int(nodes[at].parent)
	}
	slices.Reverse(buf)
	return buf
}

// goTo runs a schedule from the start.
func (w *world) goTo(path []choice) error {
	if err := w.begin(); err != nil {
		return err
	}
	for _, c := range path {
		if err := w.apply(c); err != nil {
			return err
		}
	}
	return nil
}

// goOn is goTo where the histories of the actors before the last step are known.
func (w *world) goOn(path []choice, histories []digest) error {
	w.blind = true
	last := len(path) - 1
	err := w.goTo(path[:last])
	w.blind = false
	if err != nil {
		return err
	}
	if len(histories) != len(w.actors) {
		return ErrNotDeterministic
	}
	for i, m := range w.actors {
		m.history = histories[i]
	}
	return w.apply(path[last])
}

func (w *world) histories() []digest {
	out := make([]digest, len(w.actors))
	for i, m := range w.actors {
		out[i] = m.history
	}
	return out
}

func (w *world) finding(b breach, path []choice) Finding {
	return Finding{Property: b.property, Detail: b.detail, Units: b.units, path: slices.Clone(path)}
}

// finish runs every counterexample twice more, recorded, and compares.
func (w *world) finish(res *Result) (*Result, error) {
	slices.SortStableFunc(res.Findings, func(a, b Finding) int {
		return slices.Index(properties, a.Property) - slices.Index(properties, b.Property)
	})
	for i := range res.Findings {
		f := &res.Findings[i]
		first, err := w.record(f.path)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotDeterministic, err)
		}
		second, err := w.record(f.path)
		if err != nil || !slices.Equal(first, second) {
			return nil, fmt.Errorf("%w: the schedule of the %s went differently when it was run again", ErrNotDeterministic, f.Property)
		}
		f.Strategy, f.Policy, f.Steps = w.sel.String(), w.cfg.Policy.Name, first
		f.Columns = w.columns()
		f.Faults = w.happened()
		f.Token = w.token(f.path, f.Property)
		w.end()
	}
	return res, nil
}

// record runs a schedule and returns its timeline.
func (w *world) record(path []choice) ([]Step, error) {
	w.recording = true
	defer func() { w.recording = false }()
	if err := w.goTo(path); err != nil {
		return nil, err
	}
	return w.steps, nil
}

// columns names the actors that took part, by ID.
func (w *world) columns() []string {
	names := make([]string, len(w.actors))
	for i, m := range w.actors {
		names[i] = m.Name
	}
	return names
}
