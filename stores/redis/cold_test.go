package redis_test

import (
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/quotabench/quotabench/internal/testenv"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/stores/storetest"
)

// TestColdClient: every command and every pipeline has a connection of its own, and
// what opening it takes is no command of the strategy's.
func TestColdClient(t *testing.T) {
	s := storetest.Redis(t)
	for _, cold := range []bool{false, true} {
		var m stores.Meter
		conn, err := s.Connect(t.Context(), storetest.Scope(t), stores.ConnOptions{Pool: 3, Cold: cold, Meter: &m})
		if err != nil {
			t.Fatal(err)
		}
		c := conn.Client().(goredis.UniversalClient)
		before, sent := m.Connections.Load(), m.Snapshot().Commands
		for range 4 {
			if err := c.Ping(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		_, err = c.Pipelined(t.Context(), func(p goredis.Pipeliner) error { p.Ping(t.Context()); return p.Ping(t.Context()).Err() })
		if err != nil {
			t.Fatal(err)
		}
		opened, commands := m.Connections.Load()-before, m.Snapshot().Commands-sent
		if want := map[bool]int64{false: 0, true: 5}[cold]; opened != want || commands != 6 {
			t.Errorf("cold %v: %d connections were opened and %d commands counted, want %d and 6", cold, opened, commands, want)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestColdClientsOfSeveral: so it is with a cluster and with sentinels.
func TestColdClientsOfSeveral(t *testing.T) {
	testenv.Long(t)
	for _, spec := range []string{"process:cluster=3", "process:sentinel=3"} {
		s, scope := started(t, spec), storetest.Scope(t)
		for _, cold := range []bool{false, true} {
			var m stores.Meter
			conn, err := s.Connect(t.Context(), scope, stores.ConnOptions{Pool: 3, Cold: cold, Meter: &m})
			if err != nil {
				t.Fatal(err)
			}
			before := m.Connections.Load()
			for range 20 {
				if err := conn.Client().(goredis.UniversalClient).Incr(t.Context(), scope.Prefix()+"n").Err(); err != nil {
					t.Fatal(err)
				}
			}
			if opened := m.Connections.Load() - before; cold != (opened >= 20) {
				t.Errorf("%s, cold %v: 20 commands opened %d connections", spec, cold, opened)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
