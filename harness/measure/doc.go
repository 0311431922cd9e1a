// Package measure measures strategies: it opens application instances of one on
// real stores, drives them with a workload, records every decision and hands
// the history to the oracle.
//
// A measurement is a number of rounds. Each round runs every strategy once, in
// an order of its own, with fresh keys and a fresh schema, and a reference loop
// of bare INCRs before and after each, so that what the machine does to one it
// does to all. If [harness.Both] asks for it, every strategy runs once
// more in an open loop at a rate that all share, from which latency is taken. One
// strategy in one round is one [results.Run].
//
// Before a pass, this process and the stores that were started here are put on
// cores ([Config.Cores]). During it [monitor.Cores] reads how long threads had to wait for
// one, so that a percentile can be told from the machine's doing.
//
// Within a round every strategy is given the same request stream. Latency is
// read from a monotonic clock around the call alone; in open loop it counts
// from the intended start of the request. Windows of tumbling policies are
// aligned to begin with the round, by moving the policy's timeline and never a
// clock, so that no run crosses a window unless its workload means to.
package measure
