package quota

import (
	"fmt"
	"strings"
)

// Unknown is the error for a name that is not known. What says of what kind the
// name is; rest is added to the list of known names, such as ", or all".
func Unknown(what, name string, known []string, rest string) error {
	return fmt.Errorf("unknown %s %q: %s%s", what, name, OneOf(name, known), rest)
}

// OneOf says what name should have been: the known name that was probably meant,
// and the known ones. A long list ends with how many more there are.
func OneOf(name string, known []string) string {
	hint := ""
	if n := Nearest(name, known); n != "" {
		hint = "did you mean " + n + "? It is "
	}
	return hint + "one of " + listed(known)
}

// maxListed is how long a list of names may be in an error, in bytes.
const maxListed = 240

func listed(names []string) string {
	list := names
	length := 0
	for i, n := range names {
		length += len(n) + 2
		if length > maxListed && i > 0 {
			list = names[:i]
			break
		}
	}
	text := strings.Join(list, ", ")
	if more := len(names) - len(list); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Nearest is the known name that is at most two changes of a letter away from
// name, or "" if there is none.
func Nearest(name string, known []string) string {
	best := ""
	distance := 3 // more changes than 2 make another word
	for _, n := range known {
		if len(name) > len(n)+2 || len(n) > len(name)+2 {
			continue // and a name of a megabyte takes no time
		}
		if d := edits(strings.ToLower(name), n); d < distance && d < len(n)-1 {
			best = n
			distance = d
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
			diagonal = row[j+1]
			row[j+1] = d
		}
	}
	return row[len(b)]
}
