package family

import (
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// readNotes reads what Markdown says of strategies, below a heading "# NAME" each, or "# NAME, NAME" of several. A line
// is the Doc of the Meta; "Form: " and "Source: " begin lines of their own. Then there are "## Options" with an item
// "NAME: DOC" each, "## How" and "## Deviations" with a list, "## Trouble" with a table, and "## Use" and "## Avoid"
// with a line. As the text is part of a program, it panics if a line is anything else.
func readNotes(markdown string) map[string]*strategies.Meta {
	all := map[string]*strategies.Meta{}
	var names []string
	part := ""
	for line := range strings.Lines(markdown) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if head, ok := strings.CutPrefix(line, "# "); ok {
			names = strings.Split(head, ", ")
			part = ""
			continue
		}
		if head, ok := strings.CutPrefix(line, "## "); ok {
			part = head
			continue
		}
		for _, name := range names {
			if all[name] == nil {
				all[name] = &strategies.Meta{Name: name}
			}
			if !readNote(all[name], part, line) {
				panic(fmt.Sprintf("notes of strategy %q: unexpected line %q below %q", name, line, part))
			}
		}
	}
	return all
}

// readNote reads a line below the heading of a part, and reports whether it can stand there.
func readNote(meta *strategies.Meta, part, line string) bool {
	n := &meta.Notes
	item, isItem := strings.CutPrefix(line, "- ")
	key, value, _ := strings.Cut(line, ": ")
	switch {
	case part == "" && key == "Form" && meta.Form == "":
		meta.Form = strategies.Form(value)
	case part == "" && key == "Source" && meta.Source == "":
		meta.Source = value
	case part == "" && meta.Doc == "":
		meta.Doc = line
	case part == "Options" && isItem:
		name, doc, _ := strings.Cut(item, ": ")
		meta.Options = append(meta.Options, quota.Option{Name: name, Doc: doc})
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
		return false
	}
	return true
}
