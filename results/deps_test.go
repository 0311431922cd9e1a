package results_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestRecordsStayLight: a test that imports the records gets no plotting, no JSON
// schemas and no store's client with them.
func TestRecordsStayLight(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if .Module}}{{.Module.Path}}{{end}}",
		"github.com/quotabench/quotabench/results").Output()
	if err != nil {
		t.Skipf("go list: %v", err)
	}
	for module := range strings.FieldsSeq(string(out)) {
		if module != "github.com/quotabench/quotabench" && module != "github.com/HdrHistogram/hdrhistogram-go" {
			t.Errorf("results needs %s", module)
		}
	}
}
