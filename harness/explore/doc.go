// Package explore runs a few clients of a strategy through every order in which
// their store commands can happen, and finds the shortest order that breaks a
// property: a leak, a wrong rejection, a counter that has lost its way.
//
// The strategy's own code runs unmodified over a Redis in this process
// (package memredis) and the model of its database of record. Clients, jobs and,
// on request, faults are actors; a schedule is the sequence of their steps. A
// step is one store command; with faults or refunds in play its effect and its
// reply are two, since a caller can die, or lose the reply, in between. MULTI/EXEC
// and scripts are one step, a plain pipeline one per command.
//
// [Run] searches breadth first, so the first schedule found is a shortest one,
// and does not follow a state that it has met before. Two states are the same if
// the store's contents with their deadlines, the clock, the truth about units in
// use, the faults left, the memory of every instance, and what every actor has
// been answered are. Clients that have not started and do the same are interchangeable: the first
// goes first. [Enumerate] does neither and counts every schedule.
//
// Strategies that are SQL run on a PostgreSQL server instead: a step is one
// statement, BEGIN and COMMIT among them, and a client whose statement waits for a
// lock takes none until it is let go on. All schedules are run to their ends there,
// and none is left out because of a state: what a server holds cannot be hashed.
// Deadlocks and serialization failures are counted and shown in [OnServer].
//
// What may be claimed from a search that finds nothing is in [Result.Claim]. The
// share of schedules that leak is a share and no probability.
//
// Every counterexample is run a second time, and carries a token from which
// [Replay] repeats it, in this process or on a real redis-server.
package explore
