// Package postgres holds the strategies that are SQL: PostgreSQL alone keeps the
// count, and what they promise is what its statements and locks promise.
//
// pg-check is the state that record 003 sets out from, and the quota table that
// record 000 turned down: one SELECT for what remains, and where that is enough,
// one UPDATE. The two are separate statements, so callers who read the same
// remainder are all admitted; the UPDATE adds to what is there, so that none of
// their charges is lost. Nothing in the record resets the counts.
package postgres
