package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// withSignals returns a context that ends at the first Ctrl-C, SIGTERM or SIGHUP, so
// that a run can write what it has, stop its servers and remove what it keeps in those
// of others. A second Ctrl-C or SIGTERM ends the process at once. A second SIGHUP does
// not: a terminal that is closed may send two.
func withSignals(ctx context.Context, stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, endings()...)
	done := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case sig := <-ch:
				if n > 0 && sig != syscall.SIGHUP {
					os.Exit(ExitInterrupted)
				}
				cancel() // first: a terminal that is gone may keep the message waiting
				if n == 0 {
					fmt.Fprintln(stderr, "\nstopping: results so far are kept (again to stop at once)")
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(ch)
		close(done)
		cancel()
	}
}

// endings are the signals that ask the program to end. Under nohup SIGHUP stays
// ignored.
func endings() []os.Signal {
	s := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		s = append(s, syscall.SIGHUP)
	}
	return s
}
