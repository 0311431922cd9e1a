package results

import (
	"cmp"
	"slices"
	"strings"
)

// Groups puts together what may stand in one table: summaries of one setting, in
// order of appearance. Within a group strategies that leak least come first, among
// equals those that reject least wrongly, then the faster one. Baselines come last.
func Groups(all []Summary) [][]Summary {
	var out [][]Summary
	at := map[string]int{}
	for _, s := range all {
		i, ok := at[s.setting]
		if !ok {
			i = len(out)
			at[s.setting] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], s)
	}
	for _, g := range out {
		sortForShow(g)
	}
	return out
}

// sortForShow orders the summaries of one group.
func sortForShow(s []Summary) {
	rank := func(x *Summary) int {
		switch {
		case x.Form == FormBaseline:
			return 2
		case !x.Counts():
			return 1
		default:
			return 0
		}
	}
	slices.SortStableFunc(s, func(a, b Summary) int {
		if d := rank(&a) - rank(&b); d != 0 {
			return d
		}
		if d := cmp.Compare(a.Leak.PctOfLimit, b.Leak.PctOfLimit); d != 0 {
			return d
		}
		if d := cmp.Compare(a.FalseRejects.PctOfValid, b.FalseRejects.PctOfValid); d != 0 {
			return d
		}
		if d := faster(&a, &b); d != 0 {
			return d
		}
		return strings.Compare(a.Label, b.Label)
	})
}

// FormBaseline is the form of strategies that mark the floor or the ceiling.
const FormBaseline = "baseline"

// faster compares by throughput in closed loop; at the common rate of an open
// loop only latency tells strategies apart.
func faster(a, b *Summary) int {
	x, y := b.Throughput.Value, a.Throughput.Value
	if a.Params.Loop == OpenLoop {
		x, y = a.Latency().P99.Value, b.Latency().P99.Value
	}
	return cmp.Compare(x, y)
}
