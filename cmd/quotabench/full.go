//go:build full

package main

import _ "github.com/quotabench/quotabench/full" // etcd, ZooKeeper, NATS, Envoy's rate-limit protocol
