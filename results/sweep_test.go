package results

import (
	"fmt"
	"testing"
)

func TestUnswept(t *testing.T) {
	s := &Sweep{Parameters: []Swept{{Name: "three-tier.lag"}, {Name: "ttl"}}}
	for label, want := range map[string]string{
		"three-tier": "three-tier", "three-tier:lag=5s": "three-tier",
		"three-tier:write=literal,lag=1s,reset=job": "three-tier:write=literal,reset=job",
		"other:lag=5s": "other:lag=5s", "other:ttl=1s": "other", "other:keys=a,b,ttl=1s": "other:keys=a,b",
	} {
		if got := s.Unswept(label); got != want {
			t.Errorf("%s is %q, want %q", label, got, want)
		}
	}
}

// TestSweepSeries: rounds have their points in random order, and series do not.
func TestSweepSeries(t *testing.T) {
	f := &File{Sweep: &Sweep{Parameters: []Swept{{Name: "lag", Values: []string{"0s", "1s"}},
		{Name: "workers", Values: []string{"8", "64"}}}}}
	for _, p := range [][3]string{{"b:lag=1s", "1s", "64"}, {"b", "0s", "8"}, {"a:lag=1s", "1s", "8"}, {"b", "0s", "64"},
		{"b:lag=1s", "1s", "8"}, {"a", "0s", "8"}} {
		f.Runs = append(f.Runs, Run{Params: Params{Label: p[0], Point: map[string]string{"lag": p[1], "workers": p[2]}}})
	}
	got := ""
	for _, s := range f.SweepSeries() {
		got += s.Strategy + "/" + s.Second + ":"
		for _, p := range s.Points {
			got += fmt.Sprintf(" %s=%g", p.Value, p.X)
		}
		got += "\n"
	}
	if want := "a/8: 0s=0 1s=1e+09\nb/8: 0s=0 1s=1e+09\nb/64: 0s=0 1s=1e+09\n"; got != want {
		t.Errorf("series\n%swant\n%s", got, want)
	}
}
