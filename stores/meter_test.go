package stores

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// ends is a connection on which every read fails.
type ends struct {
	net.Conn
	err error
}

func (e ends) Read([]byte) (int, error) { return 0, e.err }

// TestLostConnections: one that the other side ended counts once, and one that its user
// gave up does not.
func TestLostConnections(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int64
	}{
		{io.EOF, 1}, {errors.New("connection reset"), 1}, {os.ErrDeadlineExceeded, 0}, {net.ErrClosed, 0},
	} {
		var m Meter
		conn := m.Conn(ends{err: c.err}, nil)
		for range 3 {
			_, _ = conn.Read(make([]byte, 1))
		}
		if got := m.Snapshot().Lost; got != c.want {
			t.Errorf("after %v: %d lost, want %d", c.err, got, c.want)
		}
	}
	var m Meter
	a, b := net.Pipe()
	conn := m.Conn(a, nil)
	if err := conn.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || m.Lost.Load() != 0 {
		t.Errorf("a deadline: %v, %d lost", err, m.Lost.Load())
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	_ = b.Close()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || m.Lost.Load() != 0 {
		t.Errorf("the other side's end after a deadline: %v, %d lost", err, m.Lost.Load())
	}
	if _, err := conn.Write([]byte("x")); err == nil || m.Lost.Load() != 1 {
		t.Errorf("a write to what is closed: %v, %d lost", err, m.Lost.Load())
	}
}
