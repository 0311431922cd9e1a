package codec

import (
	"testing"

	"github.com/quotabench/quotabench/internal/report/fixture"
)

// BenchmarkEncode is a file of ten strategies in 24 rounds, which is written anew
// after every round.
func BenchmarkEncode(b *testing.B) {
	f := fixture.New(24, fixture.Strategies...)
	for b.Loop() {
		if _, err := Encode(f); err != nil {
			b.Fatal(err)
		}
	}
}
