// Package stores is the vocabulary of the stores that strategies run on: open
// stores, their names, the kinds of them, and what their connections cost.
//
// A kind of store is a [Driver] in a package of its own, which registers it when
// it is imported: [github.com/quotabench/quotabench/stores/redis] and
// [github.com/quotabench/quotabench/stores/postgres] open servers by URL, start
// them as child processes, or stand in for them inside this process. Package
// [github.com/quotabench/quotabench/stores/container] lets them run containers
// too, and [github.com/quotabench/quotabench/stores/all] imports everything.
// A run has a [Set] of stores by name, which [OpenSet] opens from specs such as
// "redis=process" and "redis.2=redis://host".
//
// A started server is a child process on a loopback port with a private data
// directory, or a container, on this machine's network if the engine runs on it
// and behind a published port otherwise. Either asks for a password that is made
// up for it, so that other users of the machine stay out, and is stopped and
// removed by Close. When this process is killed, its children end with it on
// Linux; what else is left behind, the next Open removes.
//
// Connections count their own traffic in a [Meter]: commands, round trips and
// bytes as they pass the socket, so repeats which a client library makes
// on its own account are seen too.
package stores
