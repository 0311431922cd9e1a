package results

import "strings"

// WindowText is the window for people: lengths as in "rolling 1h", where Go writes
// 1h0m0s.
func (p *Params) WindowText() string {
	words := strings.Fields(p.Window)
	for i, w := range words {
		if w = strings.TrimSuffix(w, "m0s"); w != words[i] {
			words[i] = strings.TrimSuffix(w+"m", "h0m")
			if words[i] != w+"m" {
				words[i] += "h"
			}
		}
	}
	return strings.Join(words, " ")
}
