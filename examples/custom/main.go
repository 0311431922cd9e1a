// Command custom is quotabench with two more strategies and a policy of one's own.
package main

import (
	"os"

	"github.com/quotabench/quotabench/cli"
	_ "github.com/quotabench/quotabench/strategies/all"

	_ "github.com/quotabench/quotabench/examples/custom/bursts"
	_ "github.com/quotabench/quotabench/examples/custom/planted"
	_ "github.com/quotabench/quotabench/examples/custom/slidinglog"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) }
