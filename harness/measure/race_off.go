//go:build !race

package measure

// everyCall has workers announce each call, and not only each share of the stream.
const everyCall = false
