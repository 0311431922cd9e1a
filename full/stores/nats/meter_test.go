package nats_test

import (
	"testing"

	"github.com/quotabench/quotabench/full/stores/nats"
	"github.com/quotabench/quotabench/internal/stores/metertest"
	"github.com/quotabench/quotabench/stores"
)

func TestParser(t *testing.T) {
	metertest.Pieces(t, nats.NewParser, []metertest.Traffic{
		{Name: "a message", Bytes: []byte("CONNECT {\"verbose\":false}\r\nPING\r\nSUB a.b 1\r\nPUB a.b 5\r\nPUB x\r\n"),
			Want: stores.Parsed{Commands: 1, Setup: 2}},
		{Name: "with an answer's subject, and with headers",
			Bytes: []byte("PUB a _INBOX.1 0\r\n\r\nHPUB a b 12 15\r\nNATS/1.0\r\n\r\nabc\r\n"),
			Want:  stores.Parsed{Commands: 2}},
	})
	metertest.GivesUp(t, nats.NewParser, map[string][]byte{
		"Redis": []byte("*1\r\n$4\r\nPING\r\n"), "no length": []byte("PUB a b\r\n"), "a negative one": []byte("PUB a -1\r\n"),
		"nothing": []byte("\r\n"),
	})
}

func FuzzParser(f *testing.F) {
	metertest.Fuzz(f, nats.NewParser, []metertest.Traffic{{Bytes: []byte("SUB a 1\r\nPUB a 2\r\nxy\r\nPING\r\n")}})
}
