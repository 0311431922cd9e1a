package machine

// Wait is what one thread has had of the processors since it began.
type Wait struct {
	// Process and Thread are the system's numbers of the two.
	Process, Thread int
	// Ran is the time in nanoseconds for which it ran. The system brings it up to
	// date at its clock ticks if the thread runs at this moment.
	Ran int64
	// Waited is the time in nanoseconds for which it was ready to run and another
	// thread ran: the run-queue delay. A wait counts when it has ended.
	Waited int64
	// Switches counts how often it was given a processor.
	Switches int64
}
