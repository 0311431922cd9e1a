package lease

import (
	"testing"

	"github.com/quotabench/quotabench/strategies"
)

func lookup(t *testing.T) *strategies.Meta {
	t.Helper()
	m, err := strategies.Lookup("lease")
	if err != nil {
		t.Fatal(err)
	}
	return m
}
