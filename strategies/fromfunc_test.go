package strategies

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// TestRegisterNamesAllThatIsMissing: one panic, one line.
func TestRegisterNamesAllThatIsMissing(t *testing.T) {
	withRegistry(t)
	defer func() {
		msg, _ := recover().(string)
		for _, want := range []string{`strategy ""`, "Name", "Doc", "Form", "Kinds", "counts", "Open is nil", "option o", "declared twice", "leak clause"} {
			if !strings.Contains(msg, want) {
				t.Errorf("panic %q does not name %q", msg, want)
			}
		}
		if strings.Contains(msg, "\n") {
			t.Errorf("panic of several lines: %q", msg)
		}
	}()
	Register(Meta{
		Options:   []quota.Option{{Name: "o", Type: "int"}, {Name: "o"}},
		Guarantee: []quota.Clause{{Property: quota.PropertyLeak}},
	})
}

func TestLookupSuggests(t *testing.T) {
	withRegistry(t, complete("incr-expire"), complete("unlimited"))
	if _, err := Lookup("incr_expire"); err == nil || !strings.Contains(err.Error(), "did you mean incr-expire?") {
		t.Errorf("a name nearby: %v", err)
	}
}

// TestFromFunc: one limiter for each policy, made when it is first met.
func TestFromFunc(t *testing.T) {
	withRegistry(t)
	var made []string
	var keys []string
	m := FromFunc("lib", []quota.Kind{quota.Fixed}, func(_ context.Context, _ Env, p *quota.Policy) (Allower, error) {
		made = append(made, p.String())
		if p.Limit == 13 {
			return nil, errors.New("unlucky")
		}
		left := p.Limit
		return AllowFunc(func(_ context.Context, key string) (bool, error) {
			keys = append(keys, key)
			left--
			return left >= 0, nil
		}), nil
	})
	Register(m)
	p := quota.Policy{Name: "p", Limit: 2, Unit: "calls", Window: quota.Window{Kind: quota.Fixed, Length: time.Hour}}
	s, err := m.Open(t.Context(), Env{Prefix: "run:"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, true, false} {
		d, err := s.Take(t.Context(), quota.Request{Subject: "a", Policy: &p, Units: 1})
		if err != nil || d.Admitted != want || d.Remaining != -1 || d.Tier != quota.TierProcess {
			t.Errorf("request %d: %+v, %v", i, d, err)
		}
	}
	other := p
	other.Limit = 1
	if d, err := s.Take(t.Context(), quota.Request{Subject: "a", Policy: &other, Units: 1}); err != nil || !d.Admitted {
		t.Errorf("another limit: %+v, %v", d, err)
	}
	if strings.Join(made, ", ") != "2 calls per fixed 1h, 1 call per fixed 1h" || keys[0] != "run:p:a" {
		t.Errorf("made %q, asked for %q", made, keys)
	}
	other.Limit = 13
	if _, err := s.Take(t.Context(), quota.Request{Subject: "a", Policy: &other, Units: 1}); err == nil ||
		!strings.Contains(err.Error(), "unlucky") {
		t.Errorf("a limiter that cannot be made: %v", err)
	}
	if _, err := s.Take(t.Context(), quota.Request{Subject: "a", Policy: &p, Units: 2}); err == nil {
		t.Error("a request of 2 units is answered")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Take(gone, quota.Request{Subject: "a", Policy: &p, Units: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that gave up: %v", err)
	}
	if m.ServesUnits(&p, 2) || !m.ServesUnits(&p, 1) {
		t.Error("it serves requests of 1, and of no other number of units")
	}
}

// closer counts how often it was closed.
type closer struct{ closed *int }

func (closer) Allow(context.Context, string) (bool, error) { return true, nil }

func (c closer) Close() error {
	*c.closed++
	return nil
}

// A limiter that closes a channel is closed once, however often its instance is.
func TestFromFuncClosesOnce(t *testing.T) {
	closed := 0
	m := FromFunc("closer", []quota.Kind{quota.Fixed}, func(context.Context, Env, *quota.Policy) (Allower, error) {
		return closer{&closed}, nil
	})
	s, err := m.Open(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Take(t.Context(), quota.Request{Policy: &quota.Policy{}, Units: 1}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if closed != 1 {
		t.Errorf("closed %d times", closed)
	}
}
