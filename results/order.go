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

// faster compares by what callers wait for at the common rate of an open loop, first
// where both keep up with it, and by throughput where there is only a closed loop.
func faster(a, b *Summary) int {
	x, y := a.AtRate(), b.AtRate()
	if x.Params.Loop != OpenLoop || y.Params.Loop != OpenLoop {
		return cmp.Compare(b.Throughput.Value, a.Throughput.Value)
	}
	return cmp.Or(cmp.Compare(min(x.Saturated, 1), min(y.Saturated, 1)), cmp.Compare(x.Latency().P99.Value, y.Latency().P99.Value))
}
