// Package metertest tests the parsers that meters follow traffic with.
package metertest

import (
	"testing"

	"github.com/quotabench/quotabench/stores"
)

// Traffic is what a client writes on one connection, and what is to be found in it.
type Traffic struct {
	Name  string
	Bytes []byte
	Want  stores.Parsed
	// Answered is set if everything is counted before the last byte.
	Answered bool
}

// feed parses in pieces of n bytes.
func feed(parser stores.Parser, data []byte, n int) (total stores.Parsed, ok bool) {
	for len(data) > 0 {
		k := min(n, len(data))
		got, ok := parser.Parse(data[:k])
		total.Commands += got.Commands
		total.Setup += got.Setup
		total.Asks = total.Asks || got.Asks
		if !ok {
			return total, false
		}
		data = data[k:]
	}
	return total, true
}

// Pieces requires that counts do not depend on how traffic is cut.
func Pieces(t *testing.T, parser func() stores.Parser, all []Traffic) {
	for _, tc := range all {
		t.Run(tc.Name, func(t *testing.T) {
			for n := 1; n <= len(tc.Bytes); n++ {
				if got, ok := feed(parser(), tc.Bytes, n); !ok || got != tc.Want {
					t.Fatalf("pieces of %d bytes: %+v (ok %v), want %+v", n, got, ok, tc.Want)
				}
			}
			// All but the last byte is not yet the last message.
			short, _ := feed(parser(), tc.Bytes[:len(tc.Bytes)-1], len(tc.Bytes))
			if short.Commands+short.Setup >= tc.Want.Commands+tc.Want.Setup && !tc.Answered {
				t.Errorf("counted %+v before the last byte", short)
			}
		})
	}
}

// GivesUp requires that none of the inputs is taken for traffic.
func GivesUp(t *testing.T, parser func() stores.Parser, inputs map[string][]byte) {
	for name, data := range inputs {
		if _, ok := feed(parser(), data, len(data)); ok {
			t.Errorf("%s: parsed", name)
		}
	}
}

// Fuzz checks that counts do not depend on how a stream is cut, and are possible.
func Fuzz(f *testing.F, parser func() stores.Parser, seeds []Traffic) {
	for _, tc := range seeds {
		f.Add(tc.Bytes, uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, n uint8) {
		whole, ok1 := feed(parser(), data, len(data)+1)
		cut, ok2 := feed(parser(), data, int(n)+1)
		if whole != cut || ok1 != ok2 {
			t.Fatalf("whole %+v %v, in pieces of %d %+v %v", whole, ok1, int(n)+1, cut, ok2)
		}
		if whole.Commands < 0 || whole.Commands+whole.Setup > int64(len(data)) {
			t.Fatalf("impossible counts %+v from %d bytes", whole, len(data))
		}
	})
}
