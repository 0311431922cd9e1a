// Package stores finds, starts and cleans up the stores that strategies run on.
//
// [OpenRedis] and [OpenPostgres] take the value of a command line flag: the URL
// of a server that already runs, or a word for one that is started here.
// A started server is a child process on a loopback port with a private data
// directory, or a container, on this machine's network where the engine runs on
// it and behind a published port elsewhere. Either asks for a password that is
// made up for it, so that other users of the machine stay out, and is stopped and
// removed by Close. When this process is killed, its children end with it on
// Linux; what else is left behind, the next Open removes.
//
// Connections count their own traffic in a [Meter]: commands, round trips and
// bytes as they pass the socket, so that repeats which a client library makes
// on its own account are seen too.
package stores
