package stores_test

import (
	"testing"

	"github.com/quotabench/quotabench/stores"
)

func TestRestarted(t *testing.T) {
	for _, c := range []struct {
		before, now string
		want        bool
	}{
		{"a", "a", false},
		{"a", "b", true},
		{"a,b,c", "a,c", false}, // one did not answer
		{"a,b,c", "a,c,d", true},
		{"a,b,c", "c,b,a", false},
		{"a", "", false}, // it does not tell
		{"", "a", false}, // it did not tell before
	} {
		if got := stores.Restarted(c.before, c.now); got != c.want {
			t.Errorf("from %q to %q: %v", c.before, c.now, got)
		}
	}
}
