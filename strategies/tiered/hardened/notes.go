package hardened

import "github.com/quotabench/quotabench/strategies"

var notes = strategies.Notes{
	How: []string{
		"A filter in process rejects accounts (agent, policy, window) that Redis has rejected within the last second; " +
			"a find of the Bloom filter is checked against an exact table.",
		"A script takes units from the credit that Redis holds for the account.",
		"If that does not do, one caller charges PostgreSQL for a sixteenth of the limit and deposits it, " +
			"by a token that works once and only in the hash where the draw began.",
		"That PostgreSQL has nothing left is believed for a minute in Redis, and for a second by instances under a lease.",
		"Commits and refunds are settled in PostgreSQL by the request's ID, and answer when the last lease of before is over.",
	},
	Deviations: []string{
		"PostgreSQL is charged ahead of requests; the record writes counts back 5 s later.",
		"Counts belong to windows; the record has no reset; ended ones are removed after a day.",
		"The filter holds leases of an instance's own; the record's is rebuilt from a shared set every 5 minutes.",
		"Nothing fails open: without Redis PostgreSQL decides, without both a request fails.",
		"Regions that have a Redis each draw the last quarter of a limit as it is asked for, and return what they hold " +
			"when another region nears the limit; they look once a second, and until then the other may reject wrongly.",
		"An abandoned reservation is held until its window ends.",
	},
	Use: "Use it if a limit must hold across instances, evictions and restarts of Redis, at the cost of one script per request.",
	Avoid: "Avoid it if Redis fails over to a replica that lags: the credit of before can be taken once more, " +
		"at most a draw of it. Also avoid it if limits are so small that every request draws, or if units come back from " +
		"most requests: both write PostgreSQL each time, which in another region takes a round trip to it.",
}
