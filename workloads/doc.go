// Package workloads makes the streams of requests that strategies are measured
// with, and the moments at which an open loop issues them.
//
// A [Stream] is a pure function of its parameters and a position: every strategy
// gets the same operations, however many workers fetch them and in whatever
// order. Workloads are listed in a registry, see [All]; [Fingerprint] tells
// streams apart.
//
// # Options
//
// A workload declares its options in its [Meta] as data. Flags, keys of configuration
// files and help texts are made from them, so that a new option is written in one
// place.
//
// # Options of generated streams
//
// How popular the subjects are is one of [popularityForms], and what requests cost
// one of [costForms]. Subjects can start with a part of their quota used
// (option fill), or, a share of them, with all of it (option over-quota).
//
// # Life cycles
//
// An operation with a [Fate] is the beginning of a session. If it is admitted,
// the harness carries on as its fate says:
//
//	FateCommit    wait Settle, commit Actual units; if Hold > 0, wait Hold, give Actual units back
//	FateFail      wait Settle, give Units back
//	FateAbandon   nothing: the caller is gone, and the units stay reserved
//
// # Traces
//
// The trace workload replays the rows of a file in the order of their time. The
// formats are the table traceFormats, and the one that most of the first rows
// have is that of the file. The shapes are lines of words, as access logs are,
// JSON lines, and columns with a header. The option trace-fields chooses fields:
//
//	time=ts,subject=user_id,cost=tokens
//
// Each part may be left out. Fields of nested JSON have dots in their names, and
// fields that have no name are given by number. Of two fields with a plus sign
// between them, costs are added up, and other texts joined. Without a cost a
// request costs 1. Times without a zone are in UTC.
//
// A trace of Azure LLM inference has no user, so subjects are assigned at random
// from the seed.
//
// Lines may end in LF or CRLF; a byte order mark and blank lines are skipped. A
// row that cannot be read whole is listed in [TraceInfo] with its line and the
// reason, and is used if it still has a time and a subject.
package workloads
