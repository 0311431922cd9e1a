// Package tiered holds the strategies of ADR-005: a cache of counts
// in Redis before a table in PostgreSQL, and before both an in-process Bloom
// filter of agents that are over quota.
//
// # three-tier
//
// A check asks the filter first and rejects subjects that are in it. Otherwise it reads
// the count and the limit from two Redis hashes, and if the count is missing,
// asks PostgreSQL and overwrites both hashes with what it finds there. The check
// is "used < limit": the amount asked for plays no part. An admitted request is
// then charged by HINCRBY; subjects that reach the limit enter a shared set, and a
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
//     without another charge it lives for its hour, and with ttl=literal forever.
//   - A count without a limit is an error, and stays one for as long as the count
//     lives. Failing open on a miss makes such a count.
//   - No window is ever reset.
//
// Three things the record leaves open. A refund is a charge of a negative amount,
// the only write it has. An agent without a row is an error, since nothing in it
// creates one. And the filter is filled when an instance starts, as the loop in
// its listing rebuilds before it sleeps.
//
// # redis-hash
//
// The same without the filter, and without reading limits and marking agents for
// it after a charge. It has all options but "filter" and "sync".
//
// # Options
//
// Prose and listings of the record contradict each other, and so do its listings.
// The first value is the default.
//
// write=back is the charge described above. write=through adds to the table in a
// transaction of its own and drops the cached counts of all kinds, so the
// next check is a miss; it marks the agent in the filter of its instance only,
// never in the shared set, so the next rebuild forgets it, and has no queue.
// write=literal is the listing of that charge as it stands: having dropped the
// counts it adds to them, so Redis holds the last charge alone and does not
// reject.
//
// names=schema uses the columns and fields that the record lists. names=literal
// puts them together from a type's name, as its listings do: requests and tokens
// work, tokens in a field that the schema does not have; sandboxes and storage
// have no column of that name, so checks and charges that need it fail in
// SQL. If such a count came to be in Redis, its limit did not, and the check
// fails there. Both errors are [strategies.ErrPrescribed]. The names "tokens",
// "sandboxes" and "storage" are those that the columns and fields of limits have.
//
// charge=after is the record's order: check, do the work, charge. A caller whose
// work takes time says so ([quota.Request.Settles]) and is charged by its commit,
// for what the work took; one that fails is not charged at all. For other callers
// the work takes no time, and Take charges. A charge that fails then is not made
// good: the request stays admitted, as degraded, and its units are in the column
// "charge failed". charge=before charges on admission, and corrects that on commit
// or refund: if the charge fails, so does the request.
//
// filter=scalable is the record's, which adds larger and tighter layers.
// filter=fixed is one Bloom filter for 100,000 members at 0.1 %, whose rate rises
// with more.
//
// sync=literal is the listing's loop, which catches nothing: one error of Redis ends
// it, and the filter stays unchanged until the process starts anew. sync=retry goes
// on with the next period.
//
// ttl=access gives the hash another hour at every check and charge, as the prose has
// it; ttl=charge at charges; ttl=literal only on a miss, as the listing. Charges are
// those of write=back: the other charge drops the hash, and as listed sets the hour
// in any case.
//
// lag=5s is the record's delay between a charge and its write to PostgreSQL, and
// batch=1 its one job per charge: one worker per instance runs them in order, one
// statement each, so a queue under load grows without bound. lag=0s,batch=256
// is what one would build.
//
// source=primary is the database that the record's service connects to.
// source=replica reads misses from a replica, which the record counts on for its
// reads per second: the store "postgres.replica", or next to the model a model that is
// behind by replica-lag. What such a miss reads overwrites the cache as ever.
//
// reset=none is the record. reset=job is a job of one instance, in the manner of
// a nightly or hourly one: when a policy's window has ended, it sets that kind of
// use to zero for all agents, in the table and then in Redis, and empties the
// shared set. It looks every minute, and when a request is the first in a new
// window. Filters learn at their next rebuild, and a queue that has not drained
// brings old counts back.
//
// reconcile=0s is the record's listings. reconcile=5s is the periodic reconciliation of its
// prose, a job of one instance: it overwrites counts and limits that the instance's Redis
// holds with those of the table, as they were when the round began. It repairs what was written to
// Redis alone, within a period. It also erases what was charged within the write-back's
// delay, so with lag=5s about twice the limit is admitted, and the set of agents over
// quota stays.
//
// down=prose: when Redis does not answer, PostgreSQL decides by its function
// alone; when neither does, the request is admitted. down=unified is the record's
// unified listing: the PostgreSQL path writes to Redis, whose error escapes, so
// losing Redis fails every check that the filter does not answer; an error
// of PostgreSQL admits if Redis could not be reached before, and fails a miss.
// down=service is the listing of its service, which takes the same path after any
// error of Redis and admits nothing without an answer.
package tiered
