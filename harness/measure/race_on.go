//go:build race

package measure

// everyCall has workers announce each call. The race detector does not know that
// stopping a goroutine, as reading all stacks does, makes visible what it wrote.
const everyCall = true
