package results

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

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

// StoreNames returns the names of the stores in the order of reports: Redis ones
// first, PostgreSQL ones last.
func (f *File) StoreNames() []string {
	return slices.SortedFunc(maps.Keys(f.Stores), func(a, b string) int {
		return cmp.Or(storeRank(a)-storeRank(b), strings.Compare(a, b))
	})
}

func storeRank(name string) int {
	switch kind, _, _ := strings.Cut(name, "."); kind {
	case "redis":
		return 0
	case "postgres":
		return 2
	default:
		return 1
	}
}
