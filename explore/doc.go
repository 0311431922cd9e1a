// Package explore runs a few clients of a strategy through every order in which
// their store commands can happen, and finds the shortest order that breaks a
// property: a leak, a wrong rejection, a counter that has lost its way.
//
// The search decides which schedule comes next, and judges it; an engine
// (package engine) runs it. Most strategies run in this process (package inproc),
// over a Redis in memory and the model of their database of record. Clients, jobs
// and, on request, faults are actors; a schedule is the sequence of their steps. A
// step is one store command; with faults or refunds in play its effect and its
// reply are two, since a caller can die, or lose the reply, in between. MULTI/EXEC
// and scripts are one step, a plain pipeline one per command.
//
// When all scripts have ended, everything is at rest and few units are left, one more
// client asks until it is rejected, each request in one step: what the scripts have lost
// shows to it. It stays away if time has passed within a request.
//
// [Run] searches breadth first, so the first schedule found is a shortest one,
// and does not follow a state that it has met before. Two states are the same if
// these are: the store's contents with their deadlines, the clock, the truth about
// units in use, the faults left, the memory of every instance, and what every
// actor has been answered. If the strategy is one of this module, clients that have not
// started and do the same are interchangeable: the first goes first. [Enumerate] does
// neither and counts every schedule.
//
// Strategies that are SQL run on a PostgreSQL server (package postgres): a step is
// one statement, BEGIN and COMMIT among them, and a client whose statement waits for a
// lock takes none until it is let go on. All schedules are run to their ends there,
// and none is left out because of a state: what a server holds cannot be hashed.
// Deadlocks and serialization failures are counted and shown in [results.ServerFacts].
//
// A service in any language runs as processes (package service, [Process]): a step is a command that
// one of them sends to Redis while it has a request. All schedules are run to their ends there too, each
// with a subject of its own, by the wall clock. Redis is a server, or in memory with a clock that is moved.
//
// What may be claimed of the properties that no schedule broke is in the result's
// Claim. The claim is withheld, and the result is joined by [ErrUnseen], if not
// all of the strategy's work was seen: commands without their caller's context or
// past the client that it was given, no command at all, takes that all fail, time
// that does not come from the clock. The share of schedules that leak is a share
// and no probability.
//
// Every counterexample is run a second time, and carries a token from which
// [Replay] repeats it, in this process or on a real redis-server.
package explore
