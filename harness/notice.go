package harness

import (
	"reflect"
	"slices"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// Notice is something that happened to a store and that no plan asked for.
type Notice struct {
	// Fault is what it was to a strategy; "" is one that no clause tolerates.
	Fault quota.Fault
	// Code of the finding, which discards the correctness figures; "" if another
	// finding tells of it.
	Code string
	// Detail is one line, with the time.
	Detail string
}

// noticed returns the clauses under what was planned, and leaves those undecided that do not tolerate what happened to the
// stores: whether a strategy would have kept them is not known.
func (j *judgement) noticed(happened []quota.Fault, clauses func([]quota.Fault) []results.Clause) []results.Clause {
	promised, happened := clauses(happened), slices.Clip(happened)
	for _, n := range j.Noticed {
		happened = append(happened, n.Fault)
	}
	left := clauses(happened)
	for i, c := range promised {
		if !slices.ContainsFunc(left, func(x results.Clause) bool { return reflect.DeepEqual(x, c) }) {
			promised[i].Verdict = results.Undecided
		}
	}
	return promised
}
