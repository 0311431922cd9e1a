package searches

import (
	"fmt"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/advice"
	"github.com/quotabench/quotabench/internal/kit/format"
	tables "github.com/quotabench/quotabench/internal/report/text"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// advise reads the commands of the strategies that were searched, and records and shows advice on them.
func (x *exploration) advise(chosen []strategies.Selection, policy quota.Policy) {
	read := advice.Run
	if x.Asked.Isolate {
		read = advice.RunApart
	}
	for _, sel := range chosen {
		if x.ctx.Err() != nil || !x.returned(sel.String()) {
			continue
		}
		found, err := read(x.ctx, sel, policy)
		if err != nil {
			fmt.Fprintf(x.stderr, "no advice on %s: %s\n", sel, format.OneLine(err.Error()))
		}
		x.record.Advice = append(x.record.Advice, found...)
	}
	if len(x.record.Advice) == 0 {
		return
	}
	x.gap()
	_ = tables.CommandAdvice(&x.text, x.page, x.record.Advice) // a buffer takes all
	x.keep()
	x.show()
}

// returned reports whether a strategy was searched, and neither panicked nor ended its search.
func (x *exploration) returned(strategy string) bool {
	for _, failedExplore := range x.record.Failed {
		if failedExplore.Strategy == strategy {
			return false
		}
	}
	for _, census := range x.record.Censuses {
		if census.Strategy == strategy {
			return true
		}
	}
	searched := false
	for _, search := range x.record.Searches {
		if search.Strategy != strategy {
			continue
		}
		if search.Found(explore.Panicked) != nil {
			return false
		}
		searched = true
	}
	return searched
}
