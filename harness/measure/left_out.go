package measure

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quotabench/quotabench/internal/kit/clock"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/results"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
)

// leftOut are the stores of a measurement that stopped to answer, and the strategies that
// are left out from then on: nothing waits for such a store in every run.
type leftOut struct {
	why map[string]string // by the store's name
	// hung are the strategies of which a call did not return, by label: the goroutine of
	// such a call stays, and there shall not be more of them in every round.
	hung    map[string]bool
	skipped []results.Skipped
}

// How long a store may take to answer that is asked whether it is there, and the pauses
// between two questions: a server that is started again comes back meanwhile.
var (
	goneTimeout = time.Second
	gonePauses  = []time.Duration{100 * time.Millisecond, 300 * time.Millisecond, time.Second, 2 * time.Second}
)

// ask asks those of the stores that are there, a few times each. It is called after a
// run that does not count.
func (m *measurement) ask(ctx context.Context, names ...string) {
	for _, name := range names {
		store, ok := m.cfg.Stores.Get(name)
		if !ok || m.leftOut.why[name] != "" {
			continue
		}
		err := m.answers(ctx, store)
		for _, pause := range gonePauses {
			if err == nil || (clock.Wall{}).Sleep(ctx, pause) != nil {
				break
			}
			err = m.answers(ctx, store)
		}
		if err != nil && ctx.Err() == nil {
			m.leftOut.why[name] = fmt.Sprintf("%s does not answer any more: it was asked %d times, the last time: %s", name,
				1+len(gonePauses), format.OneLine(err.Error()))
		}
	}
}

// answers asks once. A store that answers with an error of another kind is there.
func (m *measurement) answers(ctx context.Context, store stores.Store) (err error) {
	ctx, cancel := context.WithTimeout(ctx, goneTimeout)
	defer cancel()
	scope := stores.Scope(m.siteName("ask"))
	if k, ok := store.(stores.Marker); ok {
		_, err = k.Marked(ctx, scope)
	} else {
		_, err = store.Usage(ctx, scope)
	}
	if kind := stores.ErrorKind(err); kind != quota.ErrorStore && kind != quota.ErrorTimeout {
		return nil
	}
	return err
}

// needs is why the strategy cannot go on; "" if its calls have returned and all its
// stores answer.
func (l *leftOut) needs(sel strategies.Selection) string {
	if l.hung[sel.String()] {
		return "a call of it did not return"
	}
	for _, name := range storesOf(sel) {
		if why := l.why[name]; why != "" {
			return why
		}
	}
	return ""
}

// skip notes that the strategy takes no part from this round on.
func (l *leftOut) skip(sel strategies.Selection, round, rounds int, why string) {
	if slices.ContainsFunc(l.skipped, func(skipped results.Skipped) bool { return skipped.Strategy == sel.String() }) {
		return
	}
	l.skipped = append(l.skipped,
		results.Skipped{Strategy: sel.String(),
			Reason: fmt.Sprintf("left out from round %d of %d on: %s", round, rounds, why)})
}
