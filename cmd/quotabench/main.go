// Command quotabench measures quota strategies. See the README, or
// quotabench --help.
package main

import (
	"os"
	_ "time/tzdata" // policies name time zones, and a container may have none

	"github.com/quotabench/quotabench/cli"
	_ "github.com/quotabench/quotabench/strategies/all"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) }
