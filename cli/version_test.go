package cli

import (
	"encoding/json"
	"testing"

	"github.com/quotabench/quotabench/internal/version"
	"github.com/quotabench/quotabench/results"
)

func TestVersion(t *testing.T) {
	var said struct {
		Version string
		Schema  int
	}
	number, _ := version.Build()
	o := call(t.Context(), "version", "--json")
	if err := json.Unmarshal([]byte(o.stdout), &said); err != nil || said.Version != number || said.Schema != results.SchemaVersion {
		t.Errorf("%v: %s", err, o.stdout)
	}
}
