// Command custom is quotabench with two more strategies and a policy of one's own.
package main

import (
	"os"

	"github.com/quotabench/quotabench/cli"
	_ "github.com/quotabench/quotabench/strategies/all"

	_ "example.com/limits/bursts"
	_ "example.com/limits/planted"
	_ "example.com/limits/slidinglog"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) }
