package proxy_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/fakeredis/resp"
)

// What is not RESP ends the connection, and is told.
func TestFoul(t *testing.T) {
	for _, text := range []string{
		"\x16\x03\x01\x02\x00\x01\n", "*1\r\n:1\r\n", "*x\r\n", "*1\r\n$-1\r\n", "*1\r\n$4\r\nPINGxx", "*1048577\r\n",
		"*1\r\n$536870913\r\n",
		"$4\r\nPI\x00G\r\n", strings.Repeat("x", 100_000),
	} {
		p, service, redis := duel(t)
		go func() { _, _ = io.Copy(io.Discard, redis) }()
		go func() { _, _ = io.WriteString(service, text) }()
		if n, err := service.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Errorf("%.40q was answered", text)
		}
		if err := p.Foul(); !errors.Is(err, resp.ErrProtocol) || !strings.Contains(err.Error(), "the service") {
			t.Errorf("%.40q of a service: %v", text, err)
		}
	}
	for _, text := range []string{
		"HTTP/1.1 400 Bad Request\r\n", "\r\n", "+OK\n", ":x\r\n", ":\r\n", "$2\r\nabc\r\n", "*2\r\n+a\r\n\x00\r\n", "#x\r\n",
		",x\r\n", "_x\r\n",
		"$-2\r\n", strings.Repeat("*1\r\n", 40) + "+x\r\n", "+two\r\n+replies\r\n", "+" + strings.Repeat("x", 100_000),
	} {
		p, service, redis := duel(t)
		if _, err := io.WriteString(service, "PING\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(redis, make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(redis, text) }()
		_, _ = io.ReadAll(service)
		if err := p.Foul(); err == nil || !strings.Contains(err.Error(), "Redis") {
			t.Errorf("%.40q of a server: %v", text, err)
		}
	}
}

// A pipeline that is cut while it is read leaves nothing that is held.
func TestCutWhileReading(t *testing.T) {
	p, service, _ := duel(t)
	p.Hold(true)
	go func() { _, _ = io.WriteString(service, strings.Repeat("GET k\r\n", 20_000)) }()
	for len(p.Held()) == 0 {
		<-p.Changed()
	}
	p.Cut()
	if err := p.Close(); err != nil { // which waits for the readers
		t.Error(err)
	}
	if n := len(p.Held()); n > 0 {
		t.Errorf("%d commands of closed connections are held", n)
	}
}

// Whatever a side sends, its connection is foul exactly if that is not RESP, and ends.
func FuzzEitherSide(f *testing.F) {
	f.Add([]byte("*1\r\n$4\r\nPING\r\nGET k\r\n"), false)
	f.Add([]byte("MULTI\r\nGET k\r\nEXEC\r\nSUBSCRIBE a\r\nGET k\r\n"), true)
	f.Add([]byte("+OK\r\n*1\r\n_\r\n>1\r\n+x\r\n"), false)
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), true)
	f.Add([]byte{0x16, 3, 1}, false)
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		noise := make([]byte, r.IntN(200))
		for i := range noise {
			noise[i] = "*$+-:>|%~_#,(\r\n\r\n\r\n0123456789abc\x00\xff"[r.IntN(34)]
		}
		f.Add(noise, r.IntN(2) == 0)
	}
	f.Fuzz(func(t *testing.T, sent []byte, on bool) {
		if got, want := foulService(t, sent, on), fails(sent, (*resp.Reader).Command); got != want {
			t.Errorf("%q of a service is foul: %v, want %v", sent, got, want)
		}
		if got, want := foulRedis(t, sent), foulReplies(t, sent); got != want {
			t.Errorf("%q of a server is foul: %v, want %v", sent, got, want)
		}
	})
}

func foulService(t *testing.T, sent []byte, on bool) bool {
	p, service, redis := duel(t)
	p.Hold(on)
	go func() { _, _ = io.Copy(io.Discard, redis) }()
	_, _ = service.Write(sent)
	if fails(sent, (*resp.Reader).Command) {
		_, _ = io.Copy(io.Discard, service) // until the proxy closes it
		return p.Foul() != nil
	}
	for i, c := range p.Held() {
		if i == 0 {
			go func() { _, _ = c.Send() }()
		}
		c.Stall()
		c.Answer()
	}
	p.Cut()
	if n := len(p.Held()); n > 0 {
		t.Errorf("%d commands of closed connections are held", n)
	}
	return p.Foul() != nil
}

// pings are how many replies the server of a duel owes.
const pings = 3

func foulRedis(t *testing.T, sent []byte) bool {
	p, service, redis := duel(t)
	_, _ = io.WriteString(service, strings.Repeat("PING\r\n", pings))
	_, _ = io.ReadFull(redis, make([]byte, pings*len("PING\r\n")))
	go func() {
		_, _ = redis.Write(sent)
		_ = redis.Close()
	}()
	got, _ := io.ReadAll(service)
	if !bytes.HasPrefix(sent, got) {
		t.Errorf("the server sent %q, and the service got %q", sent, got)
	}
	return p.Foul() != nil
}

// foulReplies says whether something is no reply, or one reply too many.
func foulReplies(t *testing.T, sent []byte) bool {
	r := resp.NewReader(bytes.NewReader(sent))
	n := 0
	for {
		raw, err := r.Reply()
		if err != nil {
			return errors.Is(err, resp.ErrProtocol)
		}
		if text := resp.Text(raw); len(text) > 400 || strings.ContainsAny(text, "\r\n") {
			t.Errorf("%q is described as %q", raw, text)
		}
		if raw[0] != '>' {
			n++
		}
		if n > pings && raw[0] != '-' && raw[0] != '>' {
			return true
		}
	}
}

// fails reports whether reading ends because what was sent is not RESP.
func fails(sent []byte, read func(*resp.Reader) ([][]byte, []byte, error)) bool {
	for r := resp.NewReader(bytes.NewReader(sent)); ; {
		if _, _, err := read(r); err != nil {
			return errors.Is(err, resp.ErrProtocol)
		}
	}
}
