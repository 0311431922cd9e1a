// Package sim runs strategies in virtual time. A month, three regions, a filter
// that is rebuilt every five minutes and a nightly job pass in seconds, and one
// seed gives one run, to the byte.
//
// The strategies' own code runs, unmodified, one caller at a time. What is
// modelled is what lies around it: a [Network] between callers and stores with a
// request leg, a queue and a service time at the server, and a reply leg, all
// drawn from tables of integers; instances whose clocks differ; stores in which
// keys expire and calendar windows turn as virtual time passes. Redis is a table
// in memory (package fakeredis) or, to check the table, a real server; the
// database of record is [strategies.Model].
//
// What is reported is leak, false rejects, drift, staleness, hit rates and
// counts, judged by the same oracle as a measurement, and how they develop over
// time ([results.Series]). Latencies come from the model and say nothing about a real
// store; there is no throughput.
//
// # In a test of one's own
//
// [Run] takes any [strategies.Meta], registered or not:
//
//	report, err := sim.Run(ctx, sim.Config{
//		Strategies: []strategies.Selection{mine}, Policy: policy, Workload: hotKey,
//		Duration: 31 * 24 * time.Hour, Load: harness.OpenAt(10),
//	})
package sim
