package httpstore

import (
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/metertest"
	"github.com/quotabench/quotabench/stores"
)

func TestParserCountsRequests(t *testing.T) {
	one := "GET /a?b=c HTTP/1.1\r\nHost: h\r\n\r\n"
	post := "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"
	metertest.Pieces(t, func() stores.Parser { return &parser{} }, []metertest.Traffic{
		{Name: "one", Bytes: []byte(one), Want: stores.Parsed{Commands: 1}},
		{Name: "three", Bytes: []byte(one + post + one), Want: stores.Parsed{Commands: 3}},
		{Name: "half", Bytes: []byte(one + "GET / HTTP/1.1\r\n"), Want: stores.Parsed{Commands: 1}, Answered: true},
	})
	if _, ok := (&parser{}).Parse([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")); ok {
		t.Error("HTTP/2 is taken for HTTP/1.1")
	}
	if _, ok := (sealed{}).Parse([]byte(one)); ok {
		t.Error("encrypted traffic is taken for a request")
	}
}
