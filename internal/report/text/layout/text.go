package layout

import (
	"cmp"
	"strings"

	"github.com/rivo/uniseg"
)

// TextWidth is the width in cells of the widest line.
func TextWidth(text string) int {
	w := 0
	for _, l := range strings.Split(text, "\n") {
		w = max(w, uniseg.StringWidth(l))
	}
	return w
}

// Wrap breaks a line so that no part is wider than width cells. It prefers to
// break at a space, which it drops, but not before a percent sign, or after a
// comma, a colon or a slash, but not within a number, or after or before one letter ("n/m", "requests/s"); failing that
// after an equals sign, and anywhere only if there is none.
func Wrap(text string, width int) []string { return Fold(text, width, uniseg.StringWidth) }

// Fold is like [Wrap], by any width of characters.
func Fold[N ~int | ~float64](text string, width N, of func(character string) N) (out []string) {
	for {
		var used N
		var cut, soft, weak int
		whole := true
		walk(text, func(at, end, _ int, place place) bool {
			w := of(text[at:end])
			if used > 0 && used+w > width { // the widest of characters has to fit
				whole = false
				if place == dropped {
					soft = at
				}
				return false
			}
			used += w
			cut = end
			switch place {
			case dropped:
				soft = at
			case after:
				soft = end
			case within:
				weak = end
			}
			return true
		})
		if whole {
			return append(out, text)
		}
		cut = cmp.Or(soft, weak, cut)
		out = append(out, strings.TrimRight(text[:cut], " "))
		text = strings.TrimLeft(text[cut:], " ")
	}
}

// place says whether a line can end at a character.
type place int

const (
	nowhere place = iota
	dropped       // in its place
	after         // behind it
	within        // behind it, if there is no better place
)

// walk goes over the characters of a line, with where each begins and ends in bytes,
// its width in cells, and whether the line can end there, until each returns false.
func walk(text string, each func(at, end, width int, place place) bool) {
	state := -1
	at := 0
	before := ""
	length := 0 // length of the word so far
	for rest := text; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		place := nowhere
		switch cluster {
		case " ":
			if !strings.HasPrefix(rest, "%") {
				place = dropped
			}
		case ",", ":":
			if !digit(before) || rest == "" || !digit(rest[:1]) {
				place = after
			}
		case "/":
			if length > 1 && strings.IndexAny(rest+" ", " ,:;.)") > 1 {
				place = after
			}
		case "=":
			place = within
		}
		if !each(at, at+len(cluster), w, place) {
			return
		}
		at = at + len(cluster)
		before = cluster
		length = length + 1
		if cluster == " " {
			length = 0
		}
	}
}

func digit(text string) bool { return len(text) == 1 && '0' <= text[0] && text[0] <= '9' }

// longestPiece is the width of the widest part of a text that [Wrap] need not break.
func longestPiece(text string) int {
	longest := 0
	for _, l := range strings.Split(text, "\n") {
		piece := 0
		walk(l, func(_, _, w int, place place) bool {
			if place != dropped {
				piece += w
			}
			longest = max(longest, piece)
			if place == dropped || place == after {
				piece = 0
			}
			return true
		})
	}
	return longest
}

// Paragraph wraps text under a heading: the first line begins with head, the
// others are indented as far.
func Paragraph(head, text string, width int) []string {
	indent := uniseg.StringWidth(head)
	out := Wrap(text, width-indent)
	for i, text := range out {
		if i == 0 {
			out[i] = strings.TrimRight(head+text, " ")
		} else {
			out[i] = strings.Repeat(" ", indent) + text
		}
	}
	return out
}

// Pad fills a word up to n cells.
func Pad(text string, n int) string {
	return text + strings.Repeat(" ", max(0, n-uniseg.StringWidth(text)))
}
