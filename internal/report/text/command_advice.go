package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/results"
)

// AdviceText says what is wrong with a command, and what to do about it.
func AdviceText(advice *results.Advice) string {
	var what string
	switch advice.Code {
	case codes.AdviseSlots:
		what = "a Redis Cluster refuses keys in several slots"
		if len(advice.Keys) == 2 && len(advice.Slots) == 2 {
			what += fmt.Sprintf(", %s in %d and %s in %d", advice.Keys[0], advice.Slots[0], advice.Keys[1], advice.Slots[1])
		}
		what += ": give them one hash tag"
	case codes.AdviseCallerClock:
		what = "the time comes from the caller, whose clock may be wrong or step back: ask Redis for TIME"
	case codes.AdviseNoTTL:
		what = fmt.Sprintf("the key %s never expires: give it a time to live", strings.Join(advice.Keys, " "))
	case codes.AdviseTTLGap:
		what = fmt.Sprintf("the key %s has no time to live until a later command: it never expires if the caller dies "+
			"before that",
			strings.Join(advice.Keys, " "))
	case codes.AdviseUnbounded:
		what = fmt.Sprintf("the key %s grows in every window: remove old entries", strings.Join(advice.Keys, " "))
		if len(advice.Entries) > 0 {
			what += fmt.Sprintf(" (it has %s entries)", format.List(advice.Entries, ", ", func(n int) string {
				return format.Count(int64(n))
			}))
		}
	}
	return fmt.Sprintf("%s, %s: %s [%s]", advice.Code, format.Plural(advice.Count, "time", "times"), what, advice.Policy)
}

// CommandAdvice writes what fails in production of commands that break no property, with an example of each.
func CommandAdvice(w io.Writer, page layout.Page, all []results.Advice) error {
	return page.Write(w, document.Document{commandAdvice(all)})
}

func commandAdvice(all []results.Advice) (out document.Section) {
	for i := range all {
		advice := &all[i]
		text := fmt.Sprintf("advice on %s: %s", advice.Strategy, AdviceText(advice))
		out = append(out, &document.Paragraph{Text: text}, &document.Paragraph{Head: "    ", Text: advice.Command})
	}
	return out
}
