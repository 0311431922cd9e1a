package service_test

import (
	"bufio"
	"io"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/explore/internal/service"
)

// TestDial: a connection for an instance is logged in, and uses the database of the search's client.
func TestDial(t *testing.T) {
	m := miniredis.RunT(t)
	m.RequireUserAuth("search", "secret")
	for password, want := range map[string]bool{"secret": true, "other": false} {
		client := redis.NewClient(&redis.Options{Addr: m.Addr(), Username: "search", Password: password, DB: 3})
		defer client.Close() //nolint:errcheck // it was only read by
		conn, err := (&service.Command{Redis: client}).Dial(t.Context())
		if (err == nil) != want {
			t.Fatalf("by the password %s: %v", password, err)
		}
		if err != nil {
			continue
		}
		defer conn.Close() //nolint:errcheck // likewise
		if _, err := io.WriteString(conn, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(conn).ReadString('\n'); line != "+OK\r\n" || err != nil || !m.DB(3).Exists("k") {
			t.Errorf("SET is answered %q, %v", line, err)
		}
	}
}
