package session

import (
	"context"
	"testing"
)

func TestCommandLine(t *testing.T) {
	ctx := WithArgs(context.Background(), []string{"run", "--out", "a b", "--redis=redis://u:p@h", "a:b=c,d", "it's", ""})
	want := `quotabench run --out 'a b' '--redis=redis://u:***@h' a:b=c,d 'it'\''s' ''`
	if got := commandLine(ctx); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
