package confirm_test

import (
	"testing"

	"github.com/quotabench/quotabench/adapters/confirm"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

func TestConfirmed(t *testing.T) {
	for _, c := range confirm.All() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel() // one waits for the library's own time
			observed, ok, err := confirm.Embedded(c)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				t.Errorf("not confirmed: %s", observed)
			}
		})
	}
}

func TestUnknownNames(t *testing.T) {
	if _, err := confirm.Lookup("throttled"); err == nil {
		t.Error("a part of a name is taken for a confirmation")
	}
}
