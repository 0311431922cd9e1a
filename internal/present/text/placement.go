package text

import (
	"fmt"
	"strings"

	"github.com/quotabench/quotabench/internal/groups"
	"github.com/quotabench/quotabench/results"
)

// placementTexts say on which cores the strategies of one table ran, and why, and on
// which they ran in the open loops at the common rate, if there are any.
func placementTexts(group []results.Summary) []string {
	var paced []results.Summary
	for i := range group {
		if p := group[i].Paced; p != nil {
			paced = append(paced, *p)
		}
	}
	out := placements(group)
	for _, text := range placements(paced) {
		out = append(out, "at the common rate: "+text)
	}
	return out
}

// placements are the placement of most summaries first, and the others with the
// names of the strategies.
func placements(group []results.Summary) []string {
	var names groups.By[string, string]
	for i := range group {
		if p := group[i].Placement; p != nil {
			names.Add(placementText(p), group[i].Label)
		}
	}
	return commonFirst(&names, ": ")
}

// commonFirst are texts: what most have first, and the others after the names of those that have them.
func commonFirst(names *groups.By[string, string], between string) (out []string) {
	names.Sort()
	for i, text := range names.Keys {
		if i > 0 {
			text = strings.Join(names.Of[text], ", ") + between + text
		}
		out = append(out, text)
	}
	return out
}

func placementText(p *results.Placement) string {
	var parts []string
	if p.Harness != "" {
		parts = append(parts, "harness on "+p.Harness)
	}
	if p.Stores != "" {
		parts = append(parts, "stores on "+p.Stores)
	}
	if len(parts) == 0 {
		parts = append(parts, "shared by harness and stores")
	}
	return fmt.Sprintf("%s, GOMAXPROCS %d (%s: %s)", strings.Join(parts, ", "), p.Procs, p.Mode, p.Reason)
}
