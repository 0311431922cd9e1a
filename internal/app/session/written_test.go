package session

import (
	"fmt"
	"strings"
	"testing"
)

// A few drawings are named, and of many the number.
func TestWrittenFiles(t *testing.T) {
	names := []string{"exploration.json", "report.txt"}
	for i := range mostDrawings {
		names = append(names, fmt.Sprintf("x-%d.%s", i, []string{"svg", "png"}[i%2]))
	}
	names = append(names, "report.html")
	if got := Listed(names); got != strings.Join(names, ", ") {
		t.Errorf("%d drawings: %s", mostDrawings, got)
	}
	if got, want := Listed(append(names, "y.svg")), "exploration.json, report.txt, report.html, 9 drawings"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
