// Package stores finds, starts and cleans up the stores that strategies run on.
//
// [OpenRedis] and [OpenPostgres] take the value of a command line flag: the URL
// of a server that already runs, or a word for one that is started here.
// A started server is a child process on a loopback port with a private data
// directory. It is stopped by Close; on Linux it also ends when this process is
// killed, and the directory left behind is removed by the next Open.
//
// Connections count their own traffic in a [Meter]: commands, round trips and
// bytes as they pass the socket, so that repeats which a client library makes
// on its own account are seen too.
package stores
