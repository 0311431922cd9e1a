// Package cancel gives up waiting for work that cannot be cancelled.
package cancel

import "context"

// Call calls f and returns its results, or the error of ctx as soon as that is done. f
// then goes on by itself, and what it returns is lost: it must own nothing that has to
// be closed, and change nothing that its caller reads afterwards.
func Call[T any](ctx context.Context, f func() (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if ctx.Done() == nil {
		return f()
	}
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case result := <-done:
		return result.v, result.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
