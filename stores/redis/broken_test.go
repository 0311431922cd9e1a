package redis_test

import (
	"testing"

	"github.com/quotabench/quotabench/internal/machine/cores"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/redis"
	"github.com/quotabench/quotabench/stores/storetest"
)

// TestRestarted: a server that was killed comes back with what it had, on the same port.
func TestRestarted(t *testing.T) {
	storetest.Redis(t) // or skip
	s, err := redis.Open(t.Context(), "process:durable", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	allowed, ok := cores.Allowed()
	if ok {
		if err := s.Confine(t.Context(), allowed[:1]); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := s.Admin().Incr(t.Context(), "n").Err(); err != nil {
			t.Fatal(err)
		}
		before := s.PID()
		mend, err := s.Break(t.Context(), "restarted", "x")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Admin().Ping(t.Context()).Err(); err == nil {
			t.Error("it answers while it is gone")
		}
		if err := mend(t.Context()); err != nil || s.PID() == before {
			t.Fatalf("%v, process %d after %d", err, s.PID(), before)
		}
	}
	if set, _ := cores.AllowedTo(s.PID()); ok && len(set) != 1 {
		t.Errorf("it runs on the cores %v", set)
	}
	if n, err := s.Admin().Get(t.Context(), "n").Int(); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
