// Package postgres holds the strategies that are SQL: PostgreSQL alone keeps the
// count, and what they promise is what its statements and locks promise.
//
// pg-check is the state that ADR-005 sets out from, and the quota table that
// ADR-008 turned down: one SELECT for what remains, and if that is enough,
// one UPDATE. The two are separate statements, so callers who read the same
// remainder are all admitted; the UPDATE adds to what is there, so none of
// their charges is lost. Nothing in the record resets the counts.
//
// pg-query-cache, which the record turned down, puts a cache of query results in
// front of it, and empties that with every write.
//
// The others keep a row per window. pg-conditional puts the check into the UPDATE,
// for comparison: callers of one subject wait for each other's row lock, and the
// condition is looked at again after the wait. pg-row-lock and pg-optimistic are what
// ADR-RM-3 turned down: the one locks the row before it looks, the other looks
// again if the row's version has changed. pg-two-phase keeps the rows in two
// databases, and commits in both or in neither.
package postgres

import "embed"

//go:embed notes.md *.lua
var files embed.FS
