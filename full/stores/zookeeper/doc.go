// Package zookeeper opens ZooKeeper servers for runs. It is a driver of package
// stores, which registers itself when it is imported.
//
// A strategy is given a [*zk.Conn], which is one session over one connection for all
// callers: a pool's size changes nothing. What a strategy keeps under a scope is
// below nodes of the root whose names begin with [stores.Scope.Schema].
package zookeeper
