package explore

import (
	"slices"
	"strings"

	"github.com/quotabench/quotabench/explore/internal/engine"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
)

// Property is something that a schedule can break.
type Property = results.Property

// The properties.
const (
	// Leak: units in use, as callers were told, exceed the policy's limit.
	Leak Property = "leak"
	// Guarantee: a clause that the strategy declares, and that tolerates the faults
	// of the schedule, is broken.
	Guarantee Property = "guarantee"
	// FalseReject: a request was rejected although there was room at every moment
	// of it.
	FalseReject Property = "false-reject"
	// Drift: at rest, a tier's count is outside of what the truth explains.
	Drift Property = "drift"
	// TTL: at rest, a key never expires, although it expires or is gone if the clients
	// come one after the other and nothing fails; of a service, any key whose name holds the
	// subject. Or a key expires sooner than after any such order of the clients' actions with
	// as many units in use.
	TTL Property = "ttl"
	// Stranded: at rest, a tier counts units that no caller holds, explained by a
	// fault or not, and that do not end by themselves.
	Stranded Property = "stranded"
	// Negative: a stored number is below zero, although none is if the clients
	// come one after the other and nothing fails.
	Negative Property = "negative"
	// Forgotten: a tier that rejects subjects whose quota is used up no longer
	// rejects the subject, although its quota is still used up.
	Forgotten Property = "forgotten"
	// Stuck: clients wait for something that cannot come, or an instance of a service admits no new subject once a fault
	// of its Redis is over.
	Stuck Property = "stuck"
	// Panicked is not looked for: a goroutine that a strategy has started has panicked, or the
	// Go runtime has ended the program. Only a search with [Resources.Isolate] can report it.
	Panicked Property = "panic"
)

// What a PostgreSQL server can do to transactions.
const (
	Deadlock             = engine.Deadlock
	SerializationFailure = engine.SerializationFailure
)

var properties = []Property{Leak, Guarantee, FalseReject, Drift, TTL, Stranded, Negative, Forgotten, Stuck}

// Properties returns all of them, the weightiest first.
func Properties() []Property { return slices.Clone(properties) }

// ParseProperties reads a comma-separated list of properties; "" and "all" mean
// all of them.
func ParseProperties(list string) ([]Property, error) {
	if list == "" || list == "all" {
		return Properties(), nil
	}
	return namesIn(list, "property", properties)
}

// namesIn reads a list of names with commas between them, each of which is one of all.
func namesIn[T ~string](list, what string, all []T) (out []T, err error) {
	for word := range strings.SplitSeq(list, ",") {
		name := T(strings.TrimSpace(word))
		if !slices.Contains(all, name) {
			return nil, quota.Unknown(what, string(name), format.Strings(all), ", or all")
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out, nil
}
