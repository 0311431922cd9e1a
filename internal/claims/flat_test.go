package claims

import "testing"

// TestListsOfLists: a function takes the numbers of a list in a list, too.
func TestListsOfLists(t *testing.T) {
	nested := []any{exactly(1), []any{exactly(2), []any{exactly(4)}}}
	if got := flat(nil, nested); len(got) != 3 || got[2].(Number).Value != 4 {
		t.Errorf("%v", got)
	}
}
