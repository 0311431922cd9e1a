package cli

import (
	"slices"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/stores"
)

// TestDefaultStoresAreOptional: what was asked for is opened in any case, what is a
// default only if a strategy needs it.
func TestDefaultStoresAreOptional(t *testing.T) {
	for _, x := range []struct {
		args []string
		want []stores.Spec
	}{
		{nil, []stores.Spec{{Name: "postgres", From: "auto", Optional: true}, {Name: "redis", From: "auto", Optional: true}}},
		{[]string{"--redis", "process:replicas=1", "--store", "redis.2=embedded"}, []stores.Spec{
			{Name: "postgres", From: "auto", Optional: true}, {Name: "redis", From: "process:replicas=1"},
			{Name: "redis.2", From: "embedded"},
		}},
		// as a file of all defaults has it
		{[]string{"--redis", "auto", "--postgres", "process"},
			[]stores.Spec{{Name: "postgres", From: "process"}, {Name: "redis", From: "auto", Optional: true}}},
		{[]string{"--store", "postgres=process"},
			[]stores.Spec{{Name: "redis", From: "auto", Optional: true}, {Name: "postgres", From: "process"}}},
	} {
		s, cmd := newRun()
		if err := cmd.ParseFlags(x.args); err != nil {
			t.Fatal(err)
		}
		specs, err := s.Specs()
		if err != nil {
			t.Fatal(err)
		}
		specs = slices.DeleteFunc(specs, func(x stores.Spec) bool { return x.Name == "nginx" || x.Name == "haproxy" })
		same := slices.EqualFunc(specs, x.want, func(a, b stores.Spec) bool {
			return a.Name == b.Name && a.From == b.From && a.Optional == b.Optional
		})
		if !same {
			t.Errorf("%q: %+v, want %+v", x.args, specs, x.want)
		}
	}
}

// TestRunStartsOnlyWhatIsNeeded: a strategy without a database of record needs no
// PostgreSQL, and a store that is named is there though nothing needs it.
func TestRunStartsOnlyWhatIsNeeded(t *testing.T) {
	newPlace(t, nil)
	o := call(t.Context(), append([]string{"run", "--redis", "embedded", "--store", "redis.2=embedded", "--requests",
		"400", "--rounds", "1", "--instances", "1",
		"--workers", "4", "--out", "out", "honest"}, loops...)...)
	if o.code != exit.OK {
		t.Fatalf("exit %d: %s", o.code, o.stderr)
	}
	f := readResults(t)
	if want := []string{"redis", "redis.2"}; !slices.Equal(f.StoreNames(), want) {
		t.Errorf("stores %q, want %q", f.StoreNames(), want)
	}
}
