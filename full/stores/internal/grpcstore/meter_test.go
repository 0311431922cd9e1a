package grpcstore

import (
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/metertest"
	"github.com/quotabench/quotabench/stores"
)

func plain() stores.Parser { return NewParser(false) }

const greeting = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// frame is one of a type with a payload of n bytes.
func frame(kind byte, n int) string {
	b := make([]byte, 9+n)
	b[0], b[1], b[2], b[3] = byte(n>>16), byte(n>>8), byte(n), kind
	for i := range n {
		b[9+i] = 1 // a type that would be counted, were it a header
	}
	return string(b)
}

func TestParser(t *testing.T) {
	metertest.Pieces(t, plain, []metertest.Traffic{
		{Name: "a call", Bytes: []byte(greeting + frame(4, 12) + frame(8, 4) + frame(1, 40)),
			Want: stores.Parsed{Commands: 1}},
		{Name: "two calls with messages",
			Bytes: []byte(greeting + frame(1, 300) + frame(0, 70_000) + frame(6, 8) + frame(1, 0)),
			Want:  stores.Parsed{Commands: 2}},
	})
	metertest.GivesUp(t, plain, map[string][]byte{
		"HTTP/1.1": []byte("GET / HTTP/1.1\r\n"), "a preface that ends otherwise": []byte("PRI * HTTP/2.0\r\n\r\nSX"),
	})
}

func FuzzParser(f *testing.F) {
	metertest.Fuzz(f, plain, []metertest.Traffic{{Bytes: []byte(greeting + frame(4, 0) + frame(1, 3) + frame(0, 5))}})
}

func TestEncryptedTrafficIsNotFollowed(t *testing.T) {
	if _, ok := NewParser(true).Parse([]byte(greeting + frame(1, 3))); ok {
		t.Error("encrypted traffic is taken for a call")
	}
}
