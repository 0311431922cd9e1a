package plot

import (
	"fmt"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/results"
)

// verbs say what a strategy does whose schedule breaks a property.
var verbs = map[results.Property]string{
	"leak": "leaks", "guarantee": "breaks its guarantee", "false-reject": "rejects wrongly", "drift": "drifts",
	"ttl": "leaves an immortal key", "stranded": "strands units", "negative": "counts below zero",
	"forgotten": "forgets", "stuck": "gets stuck", "deadlock": "deadlocks", "serialization-failure": "fails to serialize",
	"panic": "ends its program",
}

// addTexts wraps what stands above and below the chart to its width.
func (c *chart) addTexts(f *results.Finding) {
	verb, ok := verbs[f.Property]
	if !ok {
		verb = "breaks " + string(f.Property)
	}
	headline := fmt.Sprintf("%s %s: %s", f.Strategy, verb, f.Detail)
	// Two lanes are narrow; the text above them need not be as narrow.
	c.width = max(c.width, 560)
	lines := func(s draw.TextStyle, txt string) []string {
		return strings.Split(fold(s, drawable(format.Plain(txt)), vg.Length(c.width-32)), "\n")
	}
	c.title = lines(textStyle(16, ink, true), headline)
	faults := "no fault"
	if len(f.Faults) > 0 {
		names := make([]string, len(f.Faults))
		for i, x := range f.Faults {
			names[i] = string(x)
		}
		faults = "faults: " + strings.Join(names, ", ")
	}
	c.subtitle = lines(plainText(faint), fmt.Sprintf("the shortest schedule found: %s under the policy %s, %s", steps(len(f.Steps)),
		f.Policy, faults))
	if f.Token != "" {
		c.foot = monoLines("quotabench explore --replay "+f.Token, c.width-32)
	}
}

// monoLines cuts a command into lines, a long word in the middle.
func monoLines(command string, width float64) (out []string) {
	most := max(8, int(width/monoChar))
	line := ""
	for _, word := range strings.SplitAfter(command, " ") {
		for r := []rune(word); len(r) > 0; {
			if n := len([]rune(line)); n > 0 && n+len(r) > most && (len(r) <= most || n >= most) {
				out, line = append(out, line), ""
				continue
			}
			take := min(len(r), most-len([]rune(line)))
			line += string(r[:take])
			if r = r[take:]; len(r) > 0 {
				out, line = append(out, line), ""
			}
		}
	}
	if line != "" {
		out = append(out, line)
	}
	return out
}

// steps is a number of steps in words.
func steps(n int) string {
	if n == 1 {
		return "1 step"
	}
	return fmt.Sprintf("%d steps", n)
}
