package sched

// Saved is what [Scheduler.Save] has noted.
type Saved struct {
	alive   []*Actor
	actors  []savedActor
	touched uint64
	made    int
}

type savedActor struct {
	op    Op
	parks uint32
	job   JobState
	ready bool
	done  bool
}

// Save notes where all actors are, so that another step can be tried from there after one
// that some of them take. Actors and moments of time do not come back by it, nor do
// mutexes and events: see [Scheduler.Moved]. It serves schedulers that were reset.
func (s *Scheduler) Save(into *Saved) {
	into.alive = append(into.alive[:0], s.actors...)
	into.actors = into.actors[:0]
	for _, actor := range s.members {
		x := savedActor{op: actor.op, parks: actor.parks, ready: actor.Ready(), done: actor.done}
		if actor.job != nil {
			x.job = *actor.job
		}
		into.actors = append(into.actors, x)
	}
	into.touched = s.touched
	into.made = s.made
}

// Moved reports whether something was changed since Save that Restore cannot put back: a
// mutex or an event that was there before, or the set of actors.
func (s *Scheduler) Moved(since *Saved) bool {
	return s.touched != since.touched || s.made != since.made
}

// Restore has all actors seem to be where they were at Save. Those for which frozen is
// true have been stepped since, or depend on one that has: they cannot be stepped any
// more, and are ready or not as they were.
func (s *Scheduler) Restore(from *Saved, frozen func(*Actor) bool) {
	s.actors = append(s.actors[:0], from.alive...)
	for i, actor := range s.members {
		savedActor := &from.actors[i]
		actor.op = savedActor.op
		actor.parks = savedActor.parks
		actor.done = savedActor.done
		if actor.job != nil {
			*actor.job = savedActor.job
		}
		if frozen(actor) {
			actor.frozen = true
			actor.wasReady = savedActor.ready
		}
	}
}
