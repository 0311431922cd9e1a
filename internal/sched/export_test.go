package sched

// Alive appends the actors that are not done to buf, in the order of their IDs.
func (s *Scheduler) Alive(buf []*Actor) []*Actor { return append(buf, s.actors...) }
