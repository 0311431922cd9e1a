package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotabench/quotabench/results"
)

// placementTexts say on which cores the strategies of one table ran, and why: the
// placement of most of them first, and the others with the names of the
// strategies.
func placementTexts(group []results.Summary) []string {
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
