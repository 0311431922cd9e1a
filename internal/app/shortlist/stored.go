package shortlist

import (
	_ "embed"
	"encoding/json"
	"slices"
	"sync"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// storedSearches are what searches found of the strategies of this module, each under its default policy as every kind
// that it serves, with two instances. A search does not depend on the machine. TestStored writes and checks them.
//
//go:embed searches.json
var storedSearches []byte

// storedFile is the form of searches.json.
type storedFile struct {
	// Code is a hash of the code that was searched.
	Code string `json:"code"`
	// Searches by the label of the strategy and the kind of the policy's window.
	Searches map[string]map[string][]Found `json:"searches"`
}

// readStored reads the file once.
var readStored = sync.OnceValue(func() storedFile {
	var file storedFile
	err := json.Unmarshal(storedSearches, &file)
	if err != nil {
		panic("searches.json: " + err.Error())
	}
	return file
})

// stored are the searches of a contender that are known, or nil if one of them is not.
func (s *Shortlist) stored(c *contender) []Found {
	question := &s.question
	other := question.Second != nil || question.Instances < clients || len(question.Policy.Costs) > 1
	if other || c.Form == strategies.Library {
		return nil
	}
	all := readStored().Searches[c.String()][s.question.Policy.Window.Kind.String()]
	var out []Found
	for _, faults := range s.faults(c.Selection) {
		i := slices.IndexFunc(all, func(found Found) bool { return sameFaults(found.Faults, faults) })
		if i < 0 {
			return nil
		}
		out = append(out, all[i])
	}
	return out
}

func sameFaults(a, b []quota.Fault) bool {
	return slices.Equal(a, b)
}
