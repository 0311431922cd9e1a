package server

import (
	"net"
	"testing"
)

func TestOnThisHost(t *testing.T) {
	cases := map[string]bool{
		"127.0.0.1:6379": true, "127.8.9.1:1": true, "[::1]:6379": true, "localhost:6379": true,
		"/run/redis.sock": true, "@redis": true,
		"192.0.2.7:6379": false, "redis.example:6379": false, "[2001:db8::1]:5432": false, "": false, "127.0.0.1": false,
	}
	if own, err := net.InterfaceAddrs(); err == nil {
		for _, a := range own {
			if n, ok := a.(*net.IPNet); ok {
				cases[net.JoinHostPort(n.IP.String(), "6379")] = true
			}
		}
	}
	for addr, want := range cases {
		if got := OnThisHost(addr); got != want {
			t.Errorf("%q: %v, want %v", addr, got, want)
		}
	}
}
