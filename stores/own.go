package stores

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quotabench/quotabench/internal/clock"
)

// ownServer is a server that was started here.
type ownServer interface {
	// pid is its first process where that is a child of ours, and otherwise 0.
	pid() int
	// ended reports whether it is gone by itself.
	ended() bool
	// lastWords is the end of its log, on one line.
	lastWords() string
	// close ends it and removes all that it kept.
	close() error
}

// errPortTaken is returned by a server's start where another program was faster
// to use the port.
var errPortTaken = errors.New("the port was taken by another program")

// await calls try until it succeeds, until the server is gone, or until it turns
// out that another program has the port. taken knows the last words of a server
// that did not get it.
func await(ctx context.Context, s ownServer, taken func(words string) bool, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	for {
		err := attempt(ctx, try)
		switch {
		case err == nil:
			return nil
		case s.ended():
			words := s.lastWords()
			if taken(words) {
				return errPortTaken
			}
			return fmt.Errorf("it ended at once: %s", words)
		case errors.Is(err, errPortTaken):
			return err
		case (clock.Wall{}).Sleep(ctx, 5*time.Millisecond) != nil:
			return fmt.Errorf("it did not answer within %v (%s): %w", openTimeout, oneLine(err.Error()), ctx.Err())
		}
	}
}

func attempt(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	return try(ctx)
}
