package layout

import (
	"strings"

	"github.com/rivo/uniseg"
)

// TextWidth is the width in cells of the widest line.
func TextWidth(s string) int {
	w := 0
	for _, l := range strings.Split(s, "\n") {
		w = max(w, uniseg.StringWidth(l))
	}
	return w
}

// Wrap breaks a line so that no part is wider than width cells. It prefers to
// break at a space, which it drops, but not before a percent sign, or after a
// comma, a colon or a slash; failing that after an equals sign, and anywhere only
// where there is none.
func Wrap(s string, width int) []string {
	width = max(width, 2) // a wide character has to fit
	var out []string
	for uniseg.StringWidth(s) > width {
		cut, soft, weak, used := 0, 0, 0, 0
		rest, state := s, -1
		for rest != "" {
			var cluster string
			var w int
			cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
			space := cluster == " " && !strings.HasPrefix(rest, "%")
			if used+w > width {
				if space {
					soft = cut
				}
				break
			}
			used += w
			if space {
				soft = cut
			}
			cut += len(cluster)
			switch cluster {
			case ",", ":", "/":
				soft = cut
			case "=":
				weak = cut
			}
		}
		if soft > 0 {
			cut = soft
		} else if weak > 0 {
			cut = weak
		}
		out = append(out, strings.TrimRight(s[:cut], " "))
		s = strings.TrimLeft(s[cut:], " ")
	}
	return append(out, s)
}

// Paragraph wraps text under a heading: the first line begins with head, the
// others are indented as far.
func Paragraph(head, text string, width int) []string {
	indent := uniseg.StringWidth(head)
	out := Wrap(text, width-indent)
	for i, l := range out {
		if i == 0 {
			out[i] = strings.TrimRight(head+l, " ")
		} else {
			out[i] = strings.Repeat(" ", indent) + l
		}
	}
	return out
}

// Pad fills a word up to n cells.
func Pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-uniseg.StringWidth(s))) }
