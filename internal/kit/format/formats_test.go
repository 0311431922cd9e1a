package format

import (
	"fmt"
	"testing"

	_ "github.com/quotabench/quotabench/internal/kit/testenv"
)

func TestFormat(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{NS(0), "0.00 ns"}, {NS(7), "7.00 ns"}, {NS(999.4), "999 ns"}, {NS(999.6), "1.00 µs"}, {NS(41_234), "41.2 µs"},
		{NS(999_600), "1.00 ms"}, {NS(1.5e9), "1.50 s"}, {NS(3.6e12), "3,600 s"},
		{Count(0), "0"}, {Count(-1_234_567), "-1,234,567"}, {Count(999), "999"},
		{Count(-1 << 63), "-9,223,372,036,854,775,808"},
		{Pct(0), "0 %"}, {Pct(0.0004), "0.0004 %"}, {Pct(0.00096), "0.0010 %"}, {Pct(3e-7), "0.0000003 %"},
		{Pct(1e-12), "<0.000000001 %"}, {Pct(0.03), "0.030 %"}, {Pct(99.99), ">99.9 %"}, {Pct(100), "100 %"},
		{Pct(12.34), "12.3 %"}, {Pct(1234), "1,234 %"}, {Signed(3), "+3"}, {Signed(0), "0"}, {Range(3, 3), "3"},
		{Range(3, 5), "3..5"},
		{Per(0.001), "<0.01"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestUnits(t *testing.T) {
	for _, c := range []struct {
		n    int64
		name string
		want string
	}{
		{1, "e-mails", "1 e-mail"}, {50, "requests", "50 requests"}, {1, "MB", "1 MB"}, {1, "sandboxes", "1 sandbox"},
		{1, "bytes", "1 byte"},
		{0, "links", "0 links"}, {1, "entries", "1 entry"}, {1, "access", "1 access"}, {1, "caches", "1 cache"},
		{1, "batches", "1 batch"}, {2, "MB", "2 MB"},
	} {
		if got := Units(c.n, c.name); got != c.want {
			t.Errorf("%d %s: %q, want %q", c.n, c.name, got, c.want)
		}
	}
}

func TestNumber(t *testing.T) {
	if got := fmt.Sprint(Number(0, "unit"), Number(1, "unit"),
		Number(-12_345, "unit")); got != "0 units1 unit-12,345 units" {
		t.Error(got)
	}
}

func TestCommand(t *testing.T) {
	got := Command([]string{"run", "gcra", "--redis=redis://:p@h", "--policy", "10 per 1m"})
	if want := "quotabench run gcra '--redis=redis://:***@h' --policy '10 per 1m'"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
