package results

import "slices"

// guaranteeLines renders what was promised and what came of it.
func guaranteeLines(group []Summary) []string {
	unit := plain(group[0].Params.Unit)
	g := grid{columns: []column{
		labelColumn, {title: "promise: at most", left: true, flexible: true, minimum: 16},
		{title: "worst\nmeasured"}, {title: "bound", left: true}, {title: "verdict", left: true},
	}}
	for i := range group {
		s := &group[i]
		for j, c := range s.Guarantee {
			label := plain(s.Label)
			if j > 0 {
				label = ""
			}
			g.add(label, promise(c), formatRange(c.Certain, c.Possible), "≤ "+units(c.Bound, unit), verdictCell(c.Verdict))
		}
	}
	if len(g.rows) == 0 {
		return nil
	}
	out := append([]string{"DECLARED GUARANTEES  in the worst window of any subject and round"}, g.lines(tableWidth)...)
	note := "leak: admitted, L is the limit, bound and measured are beyond it; false rejects: units rejected although there was room"
	if slices.ContainsFunc(group, func(s Summary) bool {
		return slices.ContainsFunc(s.Guarantee, func(c Clause) bool { return c.Verdict == Undecided })
	}) {
		note += "; undecided: what certainly happened keeps the bound, what possibly happened does not, or the load was too weak to tell"
	}
	return append(out, noteLines(note)...)
}

// promise puts the property and its bound into one cell: two columns leave the
// formulas too little room to stay on one line.
func promise(c Clause) string {
	name := plain(c.Property)
	if c.Property == propertyFalseReject {
		name = "false rejects"
	}
	return name + ": " + plain(c.Formula)
}

// settlementLines renders what became of admitted requests, where callers settle
// them.
func settlementLines(group []Summary) []string {
	if !slices.ContainsFunc(group, func(s Summary) bool { return s.Settled != nil }) {
		return nil
	}
	const latency = "commit or refund takes"
	g := grid{columns: []column{labelColumn, {title: "commits"}, {title: "refunds"}, {title: "abandoned"}, {title: "errors"},
		{title: "p50", over: latency}, {title: "p99", over: latency}}}
	legend := marks{}
	rowsOf(&g, group, func(s *Summary) []string {
		x := s.Settled
		if x == nil {
			return []string{"-", "-", "-", "-", "-", "-"}
		}
		return []string{formatCount(x.Commits), formatCount(x.Refunds), formatCount(x.Abandoned), formatCount(x.Errors),
			legend.percentile(s.TimingsCount, x.Latency.P50), legend.percentile(s.TimingsCount, x.Latency.P99)}
	})
	out := append([]string{"SETTLEMENT  of admitted requests, all rounds together"}, g.lines(tableWidth)...)
	return append(out, legend.lines("refunds: after failed work and after deletions; abandoned: never settled")...)
}
