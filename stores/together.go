package stores

import "golang.org/x/sync/errgroup"

// together runs f(0) to f(n-1) at the same time and returns the first error.
func together(n int, f func(i int) error) error {
	var g errgroup.Group
	for i := range n {
		g.Go(func() error { return f(i) })
	}
	return g.Wait()
}
