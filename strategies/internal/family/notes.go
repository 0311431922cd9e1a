package family

import (
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/strategies"
)

// readNotes reads the notes of strategies from Markdown, a heading "# NAME" each. Below it
// are "## How" and "## Deviations" with a list, "## Trouble" with a table, and "## Use" and "## Avoid"
// with a line. As the text is part of a program, it panics if a line is anything else.
func readNotes(markdown string) map[string]strategies.Notes {
	all := map[string]strategies.Notes{}
	name, part := "", ""
	for line := range strings.Lines(markdown) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if head, ok := strings.CutPrefix(line, "# "); ok {
			name, part = head, ""
			continue
		}
		if head, ok := strings.CutPrefix(line, "## "); ok {
			part = head
			continue
		}
		n := all[name]
		item, isItem := strings.CutPrefix(line, "- ")
		switch {
		case part == "How" && isItem:
			n.How = append(n.How, item)
		case part == "Deviations" && isItem:
			n.Deviations = append(n.Deviations, item)
		case part == "Trouble" && strings.HasPrefix(line, "|"):
			n.Trouble = append(n.Trouble, line)
		case part == "Use" && n.Use == "":
			n.Use = line
		case part == "Avoid" && n.Avoid == "":
			n.Avoid = line
		default:
			panic(fmt.Sprintf("notes of strategy %q: unexpected line %q below %q", name, line, part))
		}
		all[name] = n
	}
	return all
}
