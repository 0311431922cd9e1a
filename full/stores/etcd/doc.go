// Package etcd opens etcd servers for runs. It is a driver of package stores, which
// registers itself when it is imported. Its client brings in gRPC.
//
// A strategy is given a [*clientv3.Client]. It has one connection for all callers,
// since HTTP/2 carries many calls at once: a pool's size changes nothing.
package etcd
