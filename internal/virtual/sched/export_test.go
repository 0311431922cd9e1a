package sched

// Switch has every actor that parks switch to the scheduler.
func (s *Scheduler) Switch() { s.switches = true }

// Alive appends the actors that are not done to buf, in the order of their IDs.
func (s *Scheduler) Alive(buf []*Actor) []*Actor { return append(buf, s.actors...) }

// Pick is Choose for [Scheduler.Run].
func (t *Tree) Pick(ready []*Actor) *Actor { return ready[t.Choose(len(ready))] }

// patience is after how many deadlines in a row, none of which let a caller go
// on, Run gives up: periodic jobs could otherwise keep a deadlock company forever.
const patience = 10_000

// Run steps one ready actor after the other, as pick chooses among them, until
// all callers are done and all jobs idle. If no actor is ready it moves time to
// the next deadline. The slice that pick sees is valid until it returns; a nil
// result ends the run early. Errors are a [*StuckError] for a deadlock.
func (s *Scheduler) Run(pick func(ready []*Actor) *Actor) error {
	var ready []*Actor
	barren := 0
	for !s.settled() {
		ready = s.Ready(ready[:0])
		if len(ready) == 0 {
			t, ok := s.NextDeadline()
			barren++
			if !ok || barren > patience {
				return s.stuck()
			}
			s.moveTo(t)
			continue
		}
		a := pick(ready)
		if a == nil {
			return nil
		}
		if a.job == nil {
			barren = 0
		}
		s.Step(a)
	}
	return nil
}

// Ready appends the actors that can be stepped to buf, in the order of their IDs.
func (s *Scheduler) Ready(buf []*Actor) []*Actor {
	for _, a := range s.actors {
		if a.Ready() {
			buf = append(buf, a)
		}
	}
	return buf
}

// Path returns the choices made so far in this run. The slice is valid until
// Next.
func (t *Tree) Path() []int { return t.path[:t.depth] }

// String renders the event as a line of a timeline.
func (e Event) String() string {
	s := e.Actor.Name + ": " + e.Op.String()
	switch {
	case e.Outcome == Killed:
		return s + " (killed)"
	case e.Outcome == Repeated && e.Err == nil:
		return s + " (repeated)"
	case e.Outcome == Failed:
		return s + " (failed: " + e.Err.Error() + ")"
	case e.Err != nil:
		return s + " = " + e.Err.Error()
	}
	return s
}

// Stepped is how often an actor has been stepped.
func (s *Scheduler) Stepped() uint64 { return s.stepped }
