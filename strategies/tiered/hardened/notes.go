package hardened

import "github.com/quotabench/quotabench/strategies"

var notes = strategies.Notes{
	How: []string{
		"A Bloom filter in process, confirmed by an exact table, rejects accounts (agent, policy, window) that Redis " +
			"rejected within the last second.",
		"A script takes units from the credit that Redis holds for the account.",
		"If that is too little, one caller charges PostgreSQL for a sixteenth of the limit and deposits it, with a token " +
			"that works once and only in the same hash.",
		"Redis remembers for a minute that PostgreSQL has nothing left, and instances for a second, under a lease.",
		"Commits and refunds are settled in PostgreSQL by the request's ID, and answer when earlier leases are over.",
	},
	Deviations: []string{
		"PostgreSQL is charged before requests; the record writes counts back 5 s later.",
		"Counts belong to windows, and are removed a day after their end; the record has no reset.",
		"The filter holds leases of one instance; the record's is rebuilt from a shared set every 5 minutes.",
		"Nothing fails open: PostgreSQL decides without Redis, and a request fails without both.",
		"If each region has a Redis, a region draws the last quarter of a limit per request, and returns credit when " +
			"another nears the limit; it looks once a second, and until then the other may reject wrongly.",
		"An abandoned reservation is held until its window ends.",
	},
	Use: "Use it if a limit must hold across instances, evictions and restarts of Redis, at the cost of one script per request.",
	Avoid: "Avoid it if Redis fails over to a replica that lags: up to a draw of credit can be taken twice. Also avoid " +
		"it if limits are so small that every request draws, or if most requests are refunded: both write PostgreSQL each time.",
}
