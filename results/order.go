package results

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Groups puts together what may stand in one table: summaries of one setting, in
// order of appearance, over the file's own rounds. Package answer sorts them.
func (f *File) Groups() [][]Summary {
	var out [][]Summary
	at := map[string]int{}
	for _, s := range f.Summarised() {
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
		return cmp.Or(slices.Index(classes, f.Class(a))-slices.Index(classes, f.Class(b)), strings.Compare(a, b))
	})
}

// The classes of stores.
const (
	ClassRedis = "redis"
	ClassOther = "other"
	ClassSQL   = "sql"
)

var classes = []string{ClassRedis, ClassOther, ClassSQL}

// Class is how the store of that name is asked. Records of earlier versions do not say it:
// what was neither Redis nor PostgreSQL was of another class.
func (f *File) Class(name string) string {
	kind, _, _ := strings.Cut(name, ".")
	named := map[string]string{"redis": ClassRedis, "postgres": ClassSQL}[kind]
	return cmp.Or(f.Stores[name].Class, named, ClassOther)
}
