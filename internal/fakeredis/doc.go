// Package fakeredis is a table of Redis keys in memory, for simulations that
// issue tens of millions of commands: it has no server, no goroutine and no
// clock of its own. Time is set by the caller and keys expire by it exactly as
// a server's do by its clock.
//
// It holds the commands that quota strategies use and says so if it does
// not know one ([Table.Unknown]); everything it does know is fuzzed against a
// real redis-server in this package's tests, error texts, scripts and expiry
// included. Scripts run in one Lua state that is kept, which is what makes them
// twenty times as fast as in a stand-in that builds a state for every call.
//
// [Client] puts a go-redis client in front of a table without a socket, and
// [Table.Process] answers the common commands of one without even that. If a
// strategy sends a command that the table lacks, [WithFallback] runs it on
// miniredis ([Mini]) in its place, so the table invalidates no strategy.
package fakeredis
