package text

import (
	"bytes"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
)

// Advice says how often what is wrong, what to do, and shows a command.
func TestCommandAdvice(t *testing.T) {
	const policy = "10 requests per fixed 1h"
	of := func(code codes.AdviceCode, count int64, more results.Advice) results.Advice {
		more.Strategy = "mine"
		more.Code = code
		more.Policy = policy
		more.Command = "SET a 1"
		more.Count = count
		return more
	}
	all := []results.Advice{
		of(codes.AdviseSlots, 180, results.Advice{Keys: []string{"a", "b"}, Slots: []int{10, 12182}}),
		of(codes.AdviseCallerClock, 1, results.Advice{}),
		of(codes.AdviseNoTTL, 2, results.Advice{Keys: []string{"a"}}),
		of(codes.AdviseTTLGap, 2, results.Advice{Keys: []string{"a"}}),
		of(codes.AdviseUnbounded, 3, results.Advice{Keys: []string{"a"}, Entries: []int{1, 2, 3, 4000}}),
	}
	const want = `advice on mine: slots, 180 times: a Redis Cluster refuses keys in several slots, a in 10 and b in 12182: give them one hash tag [10 requests per fixed 1h]
    SET a 1
advice on mine: caller-clock, 1 time: the time comes from the caller, whose clock may be wrong or step back: ask Redis for TIME [10 requests per fixed 1h]
    SET a 1
advice on mine: no-ttl, 2 times: the key a never expires: give it a time to live [10 requests per fixed 1h]
    SET a 1
advice on mine: ttl-gap, 2 times: the key a has no time to live until a later command: it never expires if the caller dies before that [10 requests per fixed 1h]
    SET a 1
advice on mine: unbounded, 3 times: the key a grows in every window: remove old entries (it has 1, 2, 3, 4,000 entries) [10 requests per fixed 1h]
    SET a 1
`
	var b bytes.Buffer
	if err := CommandAdvice(&b, layout.Page{Width: 1000}, all); err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	x := results.NewExploration()
	x.Advice = all
	if err := Exploration(&b, layout.Page{Width: 1000}, &x); err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
}
