package jetstream

import (
	"encoding/json"
	"strings"

	"github.com/quotabench/quotabench/quota"
)

// verb is what a message asks for.
type verb string

const (
	take   verb = "take"
	refund verb = "refund"
	set    verb = "set"
)

// order is a message in the stream.
type order struct {
	Verb verb `json:"verb"`
	// ID tells an instance which of its callers asked.
	ID uint64 `json:"id"`
	// Answer is the subject of NATS that the answer goes to.
	Answer string `json:"answer"`
	Key    key    `json:"key"`
	Units  int64  `json:"units,omitempty"`
	Limit  int64  `json:"limit,omitempty"`
	// Counters are what an operator sets, in the window of Key.
	Counters map[quota.Subject]int64 `json:"counters,omitempty"`
}

// key names a counter.
type key struct {
	Policy  string        `json:"policy"`
	Window  int64         `json:"window"`
	Subject quota.Subject `json:"subject,omitempty"`
}

// answer is what the consumer says.
type answer struct {
	ID       uint64 `json:"id"`
	Admitted bool   `json:"admitted"`
	// Used units of the counter afterwards; Known is false if there is none.
	Used  int64 `json:"used"`
	Known bool  `json:"known"`
}

func encode(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // the types above have nothing that cannot be encoded
	}
	return data
}

// names of the stream and of what goes over NATS in addition. NATS takes no colons
// in names, and dots separate the parts of its subjects.
type names struct{ stream string }

func newNames(prefix string) names {
	return names{strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			if (r < 'A' || r > 'Z') && (r < '0' || r > '9') {
				return '_'
			}
		}
		return r
	}, prefix)}
}

// requests is the subject that the stream keeps.
func (n names) requests() string { return n.stream + ".requests" }

// used is the subject on which the consumer is asked what it has counted.
func (n names) used() string { return n.stream + ".used" }
