// Package tiered holds the strategies of record 003 (ADR-005): a cache of counts
// in Redis before a table in PostgreSQL, and before both an in-process Bloom
// filter of agents that are over quota.
//
// # three-tier
//
// A check asks the filter first and rejects whoever is in it. Otherwise it reads
// the count and the limit from two Redis hashes, and if the count is missing,
// asks PostgreSQL and overwrites both hashes with what it finds there. The check
// is "used < limit": the amount asked for plays no part. An admitted request is
// then charged by HINCRBY; whoever reaches the limit enters a shared set, and a
// queue carries the new absolute count to PostgreSQL. Nothing of this is atomic.
//
// What follows from that is kept, because measuring it is the purpose:
//   - Any number of callers can pass the check before one of them charges.
//   - A check that missed writes an old count over charges made meanwhile.
//   - The queues of two instances overtake each other, and a count that expired
//     starts again from zero: PostgreSQL is moved backwards by either.
//   - There is one filter and one shared set for all kinds of use. An agent that
//     used up one of them is rejected for all, and as nothing leaves the set, for
//     good, also after a refund or a raised limit.
//   - Limits have no expiry and are read anew only when the count is missing.
//   - A charge made after the hash expired makes one that holds that charge alone;
//     with ttl=literal it never expires.
//   - A count without a limit is an error, and stays one for as long as the count
//     lives. Failing open on a miss makes such a count.
//   - No window is ever reset.
//
// Where prose and listing of the record differ, the prose is the default: every
// charge sets the hash's hour to live anew (ttl=literal leaves that out). When
// Redis does not answer, PostgreSQL does; when neither does, the request is
// admitted. A charge that fails is not made good: the request stays admitted and
// its units are counted nowhere but in the column "charge failed".
//
// Three things the record leaves open. A refund is its increment with a negative
// amount, the only write it has. An agent without a row is an error, since
// nothing in it creates one. And the filter is filled when an instance starts, as
// the loop in its listing rebuilds before it sleeps.
//
// # redis-hash
//
// The same without the filter, and without the shared set that only the filter
// reads.
package tiered
