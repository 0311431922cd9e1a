package tiered

import (
	"slices"

	"github.com/quotabench/quotabench/strategies"
)

// deviations are what differs from ADR-005 in both of its strategies.
var deviations = []string{
	"Agents have names; the record has UUIDs.",
	"The queue is in the memory of each instance, with one worker, and is lost with the process; the record names only a queue.",
	"A refund is a charge of a negative amount; the record has none.",
	"An agent without a row is an error: nothing in the record creates one.",
	"Payment has no column in the record's schema, and is not served.",
	"A modelled replica is late by a fixed time.",
}

var hashNotes = strategies.Notes{
	How: []string{
		"A check reads the count and the limit from two Redis hashes.",
		"On a miss it asks PostgreSQL and overwrites both hashes with the answer.",
		"It admits if the count is below the limit, for any amount.",
		"A charge is an HINCRBY afterwards, and a queue carries the new absolute count to PostgreSQL 5 s later.",
	},
	Deviations: deviations,
	Use:        "Use it to compare ADR-005's two-tier alternative with three-tier.",
	Avoid:      "Avoid it if the limit matters: check and charge are separate, and a late miss or write-back erases charges.",
}

var threeTierNotes = strategies.Notes{
	How: []string{
		"A Bloom filter in process rejects agents that seem over quota, without asking a store.",
		"Otherwise the count and the limit come from two Redis hashes, or on a miss from PostgreSQL, whose answer overwrites both.",
		"It admits if the count is below the limit, for any amount.",
		"A charge is an HINCRBY afterwards; an agent at its limit enters a shared set, and a queue carries the absolute " +
			"count to PostgreSQL 5 s later.",
		"Every 5 minutes each instance rebuilds its filter from the shared set, which nothing ever leaves.",
	},
	Deviations: slices.Concat(deviations, []string{
		"The filter's listing cannot run: the scalable filter is made of layers of a published Bloom filter, with the growth of its paper.",
		"A lock protects the filter, which is not safe for concurrent use.",
	}),
	Use:   "Use it to see what ADR-005's design does under load, in virtual time, and under every interleaving.",
	Avoid: "Avoid it in production: it leaks without bound and rejects agents for good; three-tier-hardened is its repair.",
}
