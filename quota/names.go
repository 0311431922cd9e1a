package quota

import (
	"fmt"
	"strings"
)

// Unknown is the error for a name that is not known. What says of what kind the
// name is; rest is added to the list of known names, such as ", or all".
func Unknown(what, name string, known []string, rest string) error {
	hint := ""
	if n := Nearest(name, known); n != "" {
		hint = "did you mean " + n + "? It is "
	}
	return fmt.Errorf("unknown %s %q: %sone of %s%s", what, name, hint, strings.Join(known, ", "), rest)
}

// Nearest is the known name that is at most two changes of a letter away from
// name, or "" if there is none.
func Nearest(name string, known []string) string {
	best, distance := "", 3 // more changes than 2 make another word
	for _, n := range known {
		if d := edits(strings.ToLower(name), n); d < distance && d < len(n)-1 {
			best, distance = n, d
		}
	}
	return best
}

// edits is the Levenshtein distance of two words.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d = min(diagonal, row[j], row[j+1]) + 1
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}
