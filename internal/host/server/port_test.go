package server

import (
	"errors"
	"fmt"
	"net"
	"testing"
)

func TestOnFreePort(t *testing.T) {
	var ports []int
	err := OnFreePort(0, func(port int) error {
		ports = append(ports, port)
		if len(ports) < 3 {
			return ErrPortTaken
		}
		return nil
	})
	if err != nil || len(ports) != 3 {
		t.Errorf("%v after ports %v, want success at the third", err, ports)
	}
	tries := 0
	broken := errors.New("broken")
	if err := OnFreePort(0, func(int) error { tries++; return broken }); !errors.Is(err, broken) || tries != 1 {
		t.Errorf("%v after %d tries: what is not the port's fault must not be repeated", err, tries)
	}
	tries = 0
	if err := OnFreePort(0, func(int) error {
		tries++
		return ErrPortTaken
	}); !errors.Is(err, ErrPortTaken) || tries != 5 {
		t.Errorf("%v after %d tries", err, tries)
	}
}

// While a server starts on a port, no other process begins to start one there, although nothing listens yet.
func TestPortIsMarked(t *testing.T) {
	mark := func(port int) error {
		c, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			err = c.Close()
		}
		return err
	}
	var port int
	err := OnFreePort(0, func(p int) error {
		port = p
		if mark(p) == nil {
			t.Errorf("port %d can be chosen by another process while a server starts on it", p)
		}
		return nil
	})
	if err != nil || mark(port) != nil {
		t.Errorf("port %d is marked for good, or %v", port, err)
	}
}
