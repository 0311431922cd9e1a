package strategytest

import (
	"fmt"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// others is how many subjects come after one that has used up its quota: more than ten thousand, at which many a table
// is emptied, and on servers fewer. Tests of many strategies have fewer, too.
var others, othersOnServers = 10_100, 1_100

// checkOthers: a subject that has used up its quota is rejected as before once many others have come, and each of these
// has its own.
func checkOthers(tb testing.TB, meta *strategies.Meta, stores Stores) {
	fixture := open(tb, meta, stores, 1)
	number := othersOnServers
	if len(meta.Needs) == 0 || stores.advance != nil {
		number = others
	}
	const limit = 2
	policy := anyKind(tb, meta, stores)
	book := fixture.book(withLimit(policy, limit))
	if book.most(2*limit) != limit {
		tb.Skip("promises no limit that one caller cannot exceed")
	}
	began := clock.Nano()
	first := book.subject(0)
	admitted, _ := book.exhaust(first, limit+1)
	if admitted > limit {
		tb.Skip("admits more than the limit to a subject alone")
	}
	rejected := 0
	for i := range number {
		other := book.named(quota.Subject(fmt.Sprintf("other-%d", i)), book.subjects.Add(1), 0)
		if !book.take(other, 1).Admitted {
			rejected++
		}
	}
	if rejected > 0 && book.least(1) > 0 {
		tb.Errorf("%s window, limit %d: the first request of %d of %d subjects was rejected: they share the quota of others",
			policy.Window.Kind, limit, rejected, number)
	}
	again, _ := book.exhaust(first, limit)
	if length := policy.Window.Length; length > 0 && clock.Nano()-began > int64(length/4) {
		tb.Skip("the requests of the others took so long that units may have come back")
	}
	if admitted+again <= limit {
		tb.Logf("tried: a subject that has used up its limit asks again after the requests of %d others", number)
	} else {
		tb.Errorf("%s window, limit %d: a subject that had been admitted %d units was admitted %d more after the requests "+
			"of %d other subjects: what it has used is forgotten, or its count is reset, when others come",
			policy.Window.Kind, limit, admitted, again, number)
	}
}
