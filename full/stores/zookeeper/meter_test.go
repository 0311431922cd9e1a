package zookeeper_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/full/stores/zookeeper"
	"github.com/quotabench/quotabench/internal/stores/metertest"
	"github.com/quotabench/quotabench/stores"
)

// request is one of a kind with n bytes after its kind.
func request(kind int32, n int) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+n))
	b = binary.BigEndian.AppendUint32(b, 7) // its number
	b = binary.BigEndian.AppendUint32(b, uint32(kind))
	return string(b) + strings.Repeat("\x01", n)
}

func TestParser(t *testing.T) {
	const session, create, get, ping, auth = 0, 1, 4, 11, 100
	metertest.Pieces(t, zookeeper.NewParser, []metertest.Traffic{
		{Name: "requests", Bytes: []byte(request(session, 36) + request(auth, 20) + request(create, 300) + request(ping,
			0) + request(get, 12)), Want: stores.Parsed{Commands: 2, Setup: 2}},
	})
	metertest.GivesUp(t, zookeeper.NewParser, map[string][]byte{
		"text": []byte("srvr and more"), "no kind": {0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 2},
		"negative": []byte("\xff\xff\xff\xff12345678"),
	})
}

func FuzzParser(f *testing.F) {
	metertest.Fuzz(f, zookeeper.NewParser, []metertest.Traffic{{Bytes: []byte(request(0, 36) + request(1, 3))}})
}
