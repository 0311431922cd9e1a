package postgres

import (
	"encoding/binary"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/quotabench/quotabench/internal/stores/metertest"
	"github.com/quotabench/quotabench/stores"
)

// pgwire renders messages as a client writes them after the start-up message.
func pgwire(t testing.TB, messages ...pgproto3.FrontendMessage) []byte {
	t.Helper()
	var b []byte
	for _, m := range messages {
		var err error
		b, err = m.Encode(b)
		if err != nil {
			t.Fatal(err)
		}
	}
	return b
}

var startup = &pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30,
	Parameters: map[string]string{"user": "u"}}

func traffics(t testing.TB) []metertest.Traffic {
	return []metertest.Traffic{
		{Name: "start-up alone", Bytes: pgwire(t, startup), Want: stores.Parsed{Setup: 1}},
		{Name: "password", Bytes: pgwire(t, startup, &pgproto3.PasswordMessage{Password: "E"}),
			Want: stores.Parsed{Setup: 2}},
		{Name: "simple", Bytes: pgwire(t, startup, &pgproto3.Query{String: "select 'E'"}),
			Want: stores.Parsed{Commands: 1, Setup: 1, Asks: true}},
		{Name: "prepare", Bytes: pgwire(t, startup, &pgproto3.Parse{Name: "s", Query: "select 1"},
			&pgproto3.Describe{ObjectType: 'S', Name: "s"}, &pgproto3.Sync{}), Answered: true,
			Want: stores.Parsed{Setup: 2, Asks: true}},
		{Name: "prepare and execute", Bytes: pgwire(t, startup, &pgproto3.Parse{Query: "select 1"}, &pgproto3.Bind{},
			&pgproto3.Execute{}, &pgproto3.Sync{}), Answered: true, Want: stores.Parsed{Commands: 1, Setup: 1, Asks: true}},
		{Name: "execute without sync", Bytes: pgwire(t, startup, &pgproto3.Bind{PreparedStatement: "s"}, &pgproto3.Execute{}),
			Want: stores.Parsed{Commands: 1, Setup: 1}},
		{Name: "batch", Bytes: pgwire(t, startup, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Bind{},
			&pgproto3.Execute{}, &pgproto3.Sync{}), Answered: true, Want: stores.Parsed{Commands: 2, Setup: 1, Asks: true}},
		{Name: "end", Bytes: pgwire(t, startup, &pgproto3.Terminate{}), Answered: true, Want: stores.Parsed{Setup: 1}},
	}
}

func TestParserCountsWhateverThePieces(t *testing.T) { metertest.Pieces(t, newParser, traffics(t)) }

func TestParserGivesUpOnWhatItDoesNotKnow(t *testing.T) {
	size := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	metertest.GivesUp(t, newParser, map[string][]byte{"size below its own": size(3), "absurd size": size(1 << 31)})
}

func FuzzParser(f *testing.F) { metertest.Fuzz(f, newParser, traffics(f)) }
