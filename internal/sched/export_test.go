package sched

// Alive appends the actors that are not done to buf, in the order of their IDs.
func (s *Scheduler) Alive(buf []*Actor) []*Actor { return append(buf, s.actors...) }

// Pick is Choose for [Scheduler.Run].
func (t *Tree) Pick(ready []*Actor) *Actor { return ready[t.Choose(len(ready))] }
