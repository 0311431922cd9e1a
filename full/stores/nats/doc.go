// Package nats opens servers of NATS with JetStream, its streams on disk, for runs.
// It is a driver of package stores, which registers itself when it is imported.
//
// A strategy is given a [*nats.Conn]. It is one connection for all callers, since
// every message says where its answer goes: a pool's size changes nothing. Streams
// of a scope have names that begin with [stores.Scope.Schema].
package nats
