package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/results"
)

// placementTexts say on which cores the strategies of one table ran, and why, and on
// which they ran in the open loops at the common rate, where there are any.
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
	var order []results.Placement
	names := map[results.Placement][]string{}
	for i := range group {
		p := group[i].Placement
		if p == nil {
			continue
		}
		if names[*p] == nil {
			order = append(order, *p)
		}
		names[*p] = append(names[*p], group[i].Label)
	}
	slices.SortStableFunc(order, func(a, b results.Placement) int { return len(names[b]) - len(names[a]) })
	var out []string
	for i, p := range order {
		text := placementText(&p)
		if i > 0 {
			text = strings.Join(names[p], ", ") + ": " + text
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
