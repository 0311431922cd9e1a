// Package choose answers which strategies serve a policy in a given setting: on so many
// instances and regions, at a rate, with a bound on the leak and on the 99th percentile,
// and while Redis cannot be reached.
//
// [Run] takes every strategy through stages, the cheap ones first, and a strategy leaves
// at the first reason that speaks against it:
//
//  1. what it declares: the windows that it serves, the stores that it needs
//  2. a search (package explore) for a schedule that leaks or rejects wrongly
//  3. a simulation (package sim) over regions, and across the end of a window
//  4. a run (package measure) under contention, and across the end of a window
//  5. a run in which Redis goes away, where the question is about that
//  6. a run at the rate that was asked for
//  7. what it declares once more: a strategy that promises less than is asked for is
//     not a candidate, even if no stage has shown it
//
// Nothing is judged here: the verdicts are those of the runners, and the groups those of
// package answer. A strategy that could not be taken through a stage is either not
// tested, or a candidate with a caveat that says so.
package choose
