// Package sched is a virtual clock and a scheduler that decides which caller of
// a strategy takes the next step. It is what simulation and exploration stand
// on: strategy code runs unmodified, and only the order of its steps is chosen.
//
// A caller is an [Actor]: a coroutine that runs until it is about to do
// something that others can notice, parks there, and goes on when it is stepped.
// Those points are store commands (through [Hook]), statements of the model of
// PostgreSQL (through [Statement]), and every wait of the scheduler's
// [quota.Clock]. Exactly one actor runs at any time, so one sequence of
// choices always gives the same run.
//
// The package offers two ways to choose, over the same core: a search steps whom it
// likes ([Scheduler.Step]), and with a [Tree] enumerates every order; and
// [Scheduler.Simulate] takes the operations in the order in which modelled
// latencies let them happen.
//
// What is not seen here cannot be interleaved: memory that callers of one
// instance share changes together with the step before it, which is why
// [Config.SplitReplies] exists. A caller that issues commands from a goroutine
// of its own cannot be parked, and a deadline set with context.WithTimeout runs
// on the wall clock.
package sched
