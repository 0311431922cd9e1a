package tiered

import (
	"slices"

	"github.com/quotabench/quotabench/strategies"
)

// deviations are what differs from ADR-005 in both of its strategies.
var deviations = []string{
	"Agents are named by text; the record has UUIDs.",
	"The queue is in the memory of each instance and has one worker; the record names a queue and no workers. " +
		"What is queued when a process ends is lost.",
	"A charge of a negative amount is the refund that the record lacks.",
	"An agent without a row is an error, since nothing in the record creates one.",
	"Payment has no column in the record's schema, so its policies are not served.",
	"A replica of the model is late by a fixed time; its statements travel like those to the primary.",
}

var hashNotes = strategies.Notes{
	How: []string{
		"A check reads the count and the limit from two Redis hashes.",
		"On a miss it asks PostgreSQL and overwrites both hashes with the answer.",
		"It admits if the count is below the limit, whatever the amount asked for.",
		"A charge is an HINCRBY afterwards, and a queue carries the new absolute count to PostgreSQL 5 s later.",
	},
	Deviations: deviations,
	Use:        "Use it as the two-tier row of ADR-005's table, next to three-tier.",
	Avoid:      "Avoid it if the limit matters: check and charge are separate, and a late miss or write-back erases charges.",
}

var threeTierNotes = strategies.Notes{
	How: []string{
		"A Bloom filter in process rejects agents that it takes for over quota, without asking a store.",
		"Otherwise the count and the limit come from two Redis hashes, or on a miss from PostgreSQL, whose answer overwrites both.",
		"It admits if the count is below the limit, whatever the amount asked for.",
		"A charge is an HINCRBY afterwards; an agent at its limit enters a shared set, and a queue carries the absolute " +
			"count to PostgreSQL 5 s later.",
		"Every 5 minutes each instance makes its filter again from the shared set, which nothing ever leaves.",
	},
	Deviations: slices.Concat(deviations, []string{
		"The filter's listing cannot run as it stands: the scalable filter is built of layers of a published Bloom " +
			"filter, in the growth and tightening that its paper names.",
		"The filter is swapped under a lock that checks share, as it is not safe for concurrent use.",
		"An instance keeps the hashes of its filter's members, to count false positives; no decision reads them.",
	}),
	Use:   "Use it to see what ADR-005's design does under load, in virtual time, and under every interleaving.",
	Avoid: "Avoid it in production: it leaks without bound and rejects agents for good; three-tier-hardened is its repair.",
}
