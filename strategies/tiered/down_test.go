package tiered_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// outcome puts a decision, or its absence, into a word.
func outcome(d quota.Decision, err error) string {
	switch {
	case err != nil:
		return "error"
	case !d.Degraded:
		return "normal"
	case d.Tier == quota.TierProcess:
		return "open"
	default:
		return "fallback"
	}
}

// asked counts the statements of a check in the trace of the embedded stack.
func (s *stack) asked() (n int) {
	for _, c := range s.trace {
		if strings.HasPrefix(c, "SELECT ") {
			n++
		}
	}
	return n
}

// outages are what can be lost, with the outcome and the number of statements of
// an agent with room, who is in the cache (hit) or not (miss).
var outages = []struct {
	down, lost string
	hit, miss  string
	statements [2]int
}{
	{"prose", "redis", "fallback", "fallback", [2]int{1, 1}},
	{"prose", "source", "normal", "open", [2]int{0, 1}},
	{"prose", "both", "open", "open", [2]int{1, 1}},
	{"prose", "hash", "fallback", "fallback", [2]int{1, 1}},
	{"unified", "redis", "error", "error", [2]int{3, 3}},
	{"unified", "source", "normal", "error", [2]int{0, 1}},
	{"unified", "both", "open", "open", [2]int{1, 1}},
	{"unified", "hash", "error", "error", [2]int{0, 0}},
	{"service", "redis", "error", "error", [2]int{3, 3}},
	{"service", "source", "normal", "error", [2]int{0, 1}},
	{"service", "both", "error", "error", [2]int{1, 1}},
	{"service", "hash", "error", "error", [2]int{3, 3}},
}

func TestDown(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		key := s.prefix + "quota:" + string(agent)
		list := outages
		if s.pool != nil { // each instance connects anew
			list = testenv.Pick(outages[:4], outages)
		}
		for _, c := range list {
			for i, want := range []string{c.hit, c.miss} {
				t.Run(c.down+"/"+c.lost+"/"+[]string{"hit", "miss"}[i], func(t *testing.T) {
					s.redis.Del(t.Context(), key)
					in := s.open(t, "redis-hash:down="+c.down)
					p := policy(t, "agent-api", 10)
					in.provision(p, strategies.Grant{Subject: agent, Limit: 10})
					if i == 0 {
						in.fill(p, 1)
					}
					switch c.lost {
					case "redis":
						in.losesRedis()
					case "source":
						in.losesSource()
					case "both":
						in.losesRedis()
						in.losesSource()
					case "hash": // Redis is there and answers with an error
						s.redis.Set(t.Context(), key, "no hash", 0)
					}
					s.trace = nil
					d, err := in.Take(t.Context(), request(p, 1))
					if got := outcome(d, err); got != want {
						t.Errorf("%s: %+v, %v; want %s", got, d, err, want)
					}
					if n := s.asked(); s.pool == nil && n != c.statements[i] {
						t.Errorf("%d statements, want %d:\n%s", n, c.statements[i], strings.Join(s.trace, "\n"))
					}
					if errors.Is(err, strategies.ErrPrescribed) {
						t.Errorf("%v counts as the record's own", err)
					}
				})
			}
		}
	})
}

// TestUnifiedAsksTwice: a miss whose cache goes away while it is filled counts as
// Redis' failure, and starts again at PostgreSQL.
func TestUnifiedAsksTwice(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		for down, want := range map[string]struct {
			outcome    string
			statements int
		}{"prose": {"fallback", 3}, "unified": {"error", 6}, "service": {"error", 6}} {
			s.redis.Del(t.Context(), s.prefix+"quota:"+string(agent))
			in := s.open(t, "redis-hash:down="+down)
			p := policy(t, "agent-api", 10)
			in.provision(p, strategies.Grant{Subject: agent, Limit: 10})
			s.trace = nil
			// The command on its way gets through; the next one does not.
			d, err := in.Take(at(t.Context(), "hset", in.losesRedis), request(p, 1))
			if got := outcome(d, err); got != want.outcome {
				t.Errorf("%s: %+v, %v; want %s", down, d, err, want.outcome)
			}
			if n := s.asked(); s.pool == nil && n != want.statements {
				t.Errorf("%s: %d statements, want %d", down, n, want.statements)
			}
		}
	})
}

// TestDownWithALiteralColumn: without Redis, the unified listing takes a column
// that does not exist for a database that is gone.
func TestDownWithALiteralColumn(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		for down, want := range map[string]string{"prose": "error", "unified": "open", "service": "error"} {
			in := s.open(t, "redis-hash:names=literal,down="+down)
			p := policy(t, "agent-storage", 10)
			in.provision(p, strategies.Grant{Subject: agent, Limit: 10})
			in.losesRedis()
			d, err := in.Take(t.Context(), request(p, 1))
			if got := outcome(d, err); got != want || (err != nil) != errors.Is(err, strategies.ErrPrescribed) {
				t.Errorf("%s: %+v, %v; want %s", down, d, err, want)
			}
		}
	})
}

// TestNothingOpensForAnAgentWithoutARow, nor for a caller that gave up.
func TestNothingOpensForAnAgentWithoutARow(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		for _, down := range []string{"prose", "unified", "service"} {
			in := s.open(t, "redis-hash:down="+down)
			in.losesRedis()
			d, err := in.Take(t.Context(), request(policy(t, "agent-api", 10), 1))
			if err == nil || !strings.Contains(err.Error(), "no row") {
				t.Errorf("%s: %+v, %v; want an error about the row", down, d, err)
			}
		}
	})
}

// TestWriteThroughEnforcesWithoutRedis: the table is charged before Redis fails.
func TestWriteThroughEnforcesWithoutRedis(t *testing.T) {
	onEveryStack(t, func(t *testing.T, s *stack) {
		in := s.open(t, "redis-hash:write=through")
		p := policy(t, "agent-api", 2)
		in.provision(p, strategies.Grant{Subject: agent, Limit: 2})
		in.losesRedis()
		for n, admitted := range []bool{true, true, false} {
			if d := in.take(t.Context(), p, 1); d.Admitted != admitted || !d.Degraded {
				t.Errorf("request %d: %+v, want degraded, admitted %t", n, d, admitted)
			}
		}
	})
}
