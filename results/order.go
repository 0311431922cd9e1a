package results

// Groups puts together what may stand in one table: summaries of one setting, in
// order of appearance. Package answer sorts them.
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
	return out
}

// FormBaseline is the form of strategies that mark the floor or the ceiling.
const FormBaseline = "baseline"
