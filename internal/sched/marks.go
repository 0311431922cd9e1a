package sched

// touch notes that a mutex or an event that was made before this step has changed, or has
// decided how an actor goes on.
func (s *Scheduler) touch(made uint64, number int) {
	if made != s.stepped {
		s.touched++
		if s.counts() {
			s.locks = append(s.locks, number)
		}
	}
}

// counts reports whether there are few steps in a run: then all can be noted.
func (s *Scheduler) counts() bool { return s.reused && s.queue == nil }

// numbered is the number of a mutex or an event that is made now.
func (s *Scheduler) numbered() int {
	if s.running != nil {
		return 0
	}
	s.opened++
	return s.opened
}

// Marks say how far a run has come.
type Marks struct{ locks, woken, made int }

// Marks are those of this moment.
func (s *Scheduler) Marks() Marks { return Marks{len(s.locks), len(s.woken), s.made} }

// Between is what actors have done to each other since then, other than by a store: the
// numbers of mutexes and events that were made in an earlier step and have changed or decided
// how an actor goes on, those
// of the actors whose jobs were woken, awake or not, and whether actors were made. A mutex or
// an event that was made outside of all steps has the same number, from 1, in all runs that
// begin the same; any other has 0.
func (s *Scheduler) Between(m Marks) (locks, woken []int, made bool) {
	return s.locks[m.locks:], s.woken[m.woken:], s.made != m.made
}
