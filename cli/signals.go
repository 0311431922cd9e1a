package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// withSignals returns a context that ends at the first Ctrl-C or SIGTERM, so that
// a run can write what it has and stop its servers. The second one ends the
// process at once.
func withSignals(ctx context.Context, stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-ch:
				if n > 0 {
					os.Exit(ExitInterrupted)
				}
				fmt.Fprintln(stderr, "\nstopping: results so far are kept (again to stop at once)")
				cancel()
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
