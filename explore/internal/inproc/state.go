package inproc

import (
	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/virtual/sched"
)

// State implements [engine.Engine].
func (w *Engine) State() (engine.Digest, error) {
	var digest engine.Digest
	now := w.scheduler.Now()
	w.scheduler.Sync()
	keys, err := w.store.keys()
	if err != nil {
		return digest, err
	}
	digest.Moment(now)
	digest.Stored(keys, w.store.fresh())
	w.foot.after = w.foot.after[:0]
	for i, instance := range w.instances {
		remembers := w.remembers(instance)
		digest.Num(uint64(instance.lives))
		digest.Fold(remembers)
		if i == 0 && w.foot.asked {
			remembers = w.foot.unasked
		}
		w.foot.after = append(w.foot.after, remembers)
	}
	w.foldHidden(&digest)
	for _, member := range w.actors {
		// A caller that has returned has no variables any more, and a job has
		// none between two rounds.
		if !member.Done() && (member.client != nil || member.Kind() != sched.Idle) {
			digest.Fold(member.history)
		}
		digest.Bool(member.Done())
		if j := member.Job(); j != nil && j.Every() > 0 {
			digest.Num(uint64(max(0, w.Setup.JobRounds-j.Rounds))) // that may still begin
		}
	}
	w.Budget.Digest(&digest)
	digest.Num(uint64(w.synced))
	w.Run.Truth.Digest(&digest, w.Setup.Ordered)
	return digest, nil
}

// Trail implements [engine.Brancher].
func (w *Engine) Trail() []engine.Digest {
	out := make([]engine.Digest, len(w.actors))
	for i, member := range w.actors {
		out[i] = member.history
	}
	return w.histories(out)
}

// before takes all steps of a path but the last.
func (w *Engine) before(path []engine.Choice, trail []engine.Digest) error {
	if err := w.Begin(); err != nil {
		return err
	}
	w.blind = true
	defer func() {
		w.blind = false
		w.hurries = false
	}()
	for i, choice := range path[:len(path)-1] {
		w.hurries = i < len(path)-2 // whether a tier has let go is asked of the step before the last
		if err := w.Step(choice); err != nil {
			return err
		}
	}
	if !w.recall(trail) {
		return engine.ErrNotDeterministic
	}
	return nil
}
