package format

import "strings"

// Cell is a text as a cell of a table that a spreadsheet may open: one that a
// spreadsheet would take for a formula begins with an apostrophe.
func Cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
