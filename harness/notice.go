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
	// Code of the finding, which strikes the correctness figures; "" where another
	// finding tells of it.
	Code string
	// Detail is one line, with the time.
	Detail string
}

// noticed leaves the clauses undecided that do not tolerate what happened to the
// stores: whether a strategy would have kept them is not known.
func (j *judgement) noticed(promised []results.Clause, happened []quota.Fault, clauses func(happened []quota.Fault) []results.Clause) {
	if len(j.Noticed) == 0 {
		return
	}
	for _, n := range j.Noticed {
		happened = append(happened, n.Fault)
		if n.Code != "" {
			j.strike(n.Code, "%s", n.Detail)
		}
	}
	for left := clauses(happened); len(promised) > 0; promised = promised[1:] {
		if !slices.ContainsFunc(left, func(c results.Clause) bool { return reflect.DeepEqual(c, promised[0]) }) {
			promised[0].Verdict = results.Undecided
		}
	}
}
