// Package hardened holds three-tier-hardened: the tiers of ADR-005 (a filter in
// process, Redis, PostgreSQL) without the leaks of its three-tier.
//
// PostgreSQL is charged first. A draw charges it for several units at once and
// deposits them in Redis as credit of the account: one agent under one policy in one
// window. A request takes its units from that credit in one script. So the sum of
// what was admitted never exceeds what PostgreSQL was charged for, and that never
// exceeds the limit. Redis holds nothing whose loss could admit a unit twice: a hash
// that is evicted takes its credit with it, which is lost to the account and not
// found anew. A replica that lags and takes the place of Redis is another matter: it has
// credit again that was taken, at most a draw of it.
//
// A draw begins in Redis, with a token that is part of the hash, and ends there with
// the deposit, which uses the token up. A deposit that is repeated, that comes after
// another draw has begun, or that finds the hash gone adds nothing. While a draw is
// under way others wait for it, for a short time even if its caller has died.
//
// A draw that gets less than it asked for says that PostgreSQL has nothing left. Redis
// believes that for a minute, and each instance that it has rejected for the time of
// the option lease: its filter rejects the account without asking a store. A rejection
// is tied to the window, so that a new one begins without any. Giving units back and
// setting limits end the belief in Redis at once, and answer their own callers only
// when the last instance's has ended. The Bloom filter is what a check meets first;
// what it finds is looked up in an exact table, and a false positive goes on to Redis.
//
// Regions that have a Redis each hold credit that others cannot take. PostgreSQL knows
// which regions may hold some. From the last quarter of the limit on it gives out what is
// asked for and no more, and asks the regions to return theirs: a job of each instance
// looks for that, takes the credit out of its Redis, and then gives it back. That
// PostgreSQL has nothing left is believed for the period of that job only.
//
// Commits and refunds are settled in PostgreSQL by the request's ID: each is worth the
// same however often it is told.
//
// Where Redis does not answer, PostgreSQL decides alone and exactly, and decisions are
// degraded. Where PostgreSQL does not answer, the credit in Redis lasts as long as it
// lasts, and what it does not cover is an error: nothing fails open.
package hardened
