package sched

// Starts takes an actor that has not started to its first operation, and if that is one of
// a store, lets it happen and runs the actor on to the next. It is two calls of
// [Scheduler.Step] without the switch to the scheduler between them.
func (s *Scheduler) Starts(a *Actor) {
	a.through = a.op.Kind == Start
	s.Step(a)
	a.through = false
}

// goesThrough has an actor that has parked at its first operation go on by itself.
func (a *Actor) goesThrough() bool {
	if !a.through {
		return false
	}
	a.through = false
	if !a.op.Store() {
		return false
	}
	a.steps++
	a.s.stepped++
	return true
}
