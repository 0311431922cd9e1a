// Command confirm repeats a finding of the track record against the library alone.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/quotabench/quotabench/adapters/confirm"
)

func main() { os.Exit(run()) }

// run returns 1 if something is not confirmed, and 2 if it could not be tried.
func run() int {
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "confirm [-redis ADDRESS] [NAME...]: repeats findings against the library alone, all "+
			"where none is named")
		flag.PrintDefaults()
	}
	addr := flag.String("redis", "",
		"address of a Redis that may be written to, e.g. localhost:6379; without it a Redis in memory, whose time is moved")
	flag.Parse()
	todo := confirm.All()
	if flag.NArg() > 0 {
		todo = nil
		for _, name := range flag.Args() {
			confirmation, err := confirm.Lookup(name)
			if err != nil {
				fmt.Fprintln(os.Stderr, "confirm:", err)
				return 2
			}
			todo = append(todo, confirmation)
		}
	}
	code := 0
	for _, confirmation := range todo {
		observed, ok, err := on(confirmation, *addr)
		switch {
		case err != nil:
			fmt.Fprintf(os.Stderr, "confirm: %s: %v\n", confirmation.Name, err)
			return 2
		case ok:
			fmt.Printf("%s: confirmed: %s\n", confirmation.Name, observed)
		default:
			fmt.Printf("%s: NOT confirmed: %s\n", confirmation.Name, observed)
			code = 1
		}
	}
	return code
}

func on(confirmation confirm.Confirmation, addr string) (observed string, ok bool, err error) {
	if addr == "" {
		return confirm.Embedded(confirmation)
	}
	return confirm.Server(confirmation, addr)
}
