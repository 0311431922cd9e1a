package plot

import (
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
)

// verbs say what a strategy does whose schedule breaks a property.
var verbs = map[results.Property]string{
	"leak": "leaks", "guarantee": "breaks its guarantee", "false-reject": "rejects wrongly", "drift": "drifts",
	"ttl": "leaves an immortal key", "stranded": "strands units", "negative": "counts below zero",
	"forgotten": "forgets", "stuck": "gets stuck", "deadlock": "deadlocks", "serialization-failure": "fails to serialize",
	"panic": "ends its program",
}

// sheetOf says what was found, and how to see it again.
func sheetOf(f *results.Finding) sheet {
	verb, ok := verbs[f.Property]
	if !ok {
		verb = "breaks " + string(f.Property)
	}
	faults := "no fault"
	if len(f.Faults) > 0 {
		faults = "faults: " + strings.Join(format.Strings(f.Faults), ", ")
	}
	s := sheet{
		title: format.Plain(fmt.Sprintf("%s %s: %s", f.Strategy, verb, f.Detail)),
		caption: format.Plain(fmt.Sprintf("the shortest schedule found: %s under the policy %s, %s",
			format.Plural(int64(len(f.Steps)), "step", "steps"), f.Policy, faults)),
	}
	if f.Token != "" {
		s.note = f.Replay()
	}
	s.desc = format.Join(" ", s.caption, s.note)
	return s
}
