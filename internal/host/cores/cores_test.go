package cores

import (
	"slices"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "0-1,3": "0-1,3", "3,0-1": "0-1,3", "1,1,0": "0-1", "0,1,2,4-5,7": "0-2,4-5,7", " 1 , 2 ": "1-2",
		"5-5": "5", "1023": "1023",
	} {
		s, err := Parse(text)
		if err != nil || s.String() != want {
			t.Errorf("%q gives %q (%v), want %q", text, s, err, want)
		}
		if again, err := Parse(s.String()); err != nil || !slices.Equal(again, s) {
			t.Errorf("%q is read back as %v (%v)", s, again, err)
		}
	}
	for _, text := range []string{"", ",", "1,", "a", "1-", "-1", "3-1", "1-2-3", "1024", "0-99999", "+1", "0x1", "1 2"} {
		if s, err := Parse(text); err == nil {
			t.Errorf("%q is taken as %v", text, s)
		}
	}
	if Set(nil).String() != "" {
		t.Error("an empty set is not empty")
	}
}

func TestWithout(t *testing.T) {
	s := Of(3, 1, 0, 1)
	if got := s.Without(Of(1, 2)); !slices.Equal(got, Set{0, 3}) || !slices.Equal(s, Set{0, 1, 3}) {
		t.Errorf("%v of %v", got, s)
	}
}
