// Package harness holds what the three ways to run a strategy have in common:
// the [Plan], which says what runs and with what parameters; the [Session], which
// opens a strategy's instances, sets subjects up, reads counters at rest and
// closes everything again; and [Judge], which turns a history and a few facts
// into the figures of a run.
//
// A runner only drives: harness/measure on the wall clock, harness/sim in virtual
// time, explore through every interleaving. Figures cannot differ
// between them, because none of them computes any.
package harness
