package collect

import (
	"slices"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

// TestUnion: a value that is there, or that comes twice, is not appended again.
func TestUnion(t *testing.T) {
	list := []string{"b", "a"}
	if got := Union(list, "c", "a", "c", "d"); !slices.Equal(got, []string{"b", "a", "c", "d"}) {
		t.Errorf("the union is %v", got)
	}
	if got := Union[string](nil); got != nil {
		t.Errorf("the union of nothing is %v", got)
	}
}
