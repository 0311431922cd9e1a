// Command quotabench is quotabench with published Go libraries among its strategies.
package main

import (
	"os"

	"github.com/quotabench/quotabench/cli"
	_ "github.com/quotabench/quotabench/strategies/all"

	_ "github.com/quotabench/quotabench/adapters"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) }
