package results

import "strings"

// WindowText is the window for people: lengths as in "rolling 1h"; Go writes
// 1h0m0s.
func (p *Params) WindowText() string {
	words := strings.Fields(p.Window)
	for i, w := range words {
		words[i] = span(w)
	}
	return strings.Join(words, " ")
}

// span is a duration, as Go writes it, without the zeros at its end.
func span(text string) string {
	w := strings.TrimSuffix(text, "m0s")
	if w == text {
		return text
	}
	short := strings.TrimSuffix(w+"m", "h0m")
	if short != w+"m" {
		short += "h"
	}
	return short
}
