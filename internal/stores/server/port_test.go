package server

import (
	"errors"
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
	tries, broken := 0, errors.New("broken")
	if err := OnFreePort(0, func(int) error { tries++; return broken }); !errors.Is(err, broken) || tries != 1 {
		t.Errorf("%v after %d tries: what is not the port's fault must not be repeated", err, tries)
	}
	tries = 0
	if err := OnFreePort(0, func(int) error { tries++; return ErrPortTaken }); !errors.Is(err, ErrPortTaken) || tries != 5 {
		t.Errorf("%v after %d tries", err, tries)
	}
}
