package session

import (
	"bytes"
	"errors"
	"testing"
)

// TestClosingFails: a second error does not hide the first, and is not hidden by it.
func TestClosingFails(t *testing.T) {
	var stderr bytes.Buffer
	closed := errors.New("close redis: keys are left")
	first := errors.New("the run failed")
	session := &Session{Stderr: &stderr, closing: []func() error{func() error { return closed }}}
	if err := session.Close(nil); !errors.Is(err, closed) || stderr.Len() > 0 {
		t.Errorf("alone: %v, %q", err, &stderr)
	}
	if err := session.Close(first); !errors.Is(err, first) {
		t.Errorf("after another one: %v", err)
	}
	if want := "warning: close redis: keys are left\n"; stderr.String() != want {
		t.Errorf("%q, want %q", &stderr, want)
	}
}
