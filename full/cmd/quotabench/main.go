// Command quotabench with the clients of etcd, ZooKeeper, NATS and Envoy's rate-limit
// protocol; see package full.
package main

import (
	"os"
	_ "time/tzdata" // policies name time zones, and a container may have none

	"github.com/quotabench/quotabench/cli"
	_ "github.com/quotabench/quotabench/full"
	_ "github.com/quotabench/quotabench/strategies/all"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) }
