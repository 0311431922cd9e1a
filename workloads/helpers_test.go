package workloads

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/quotabench/quotabench/quota"
)

// The real traces are not part of the repository.
const (
	tracesDir   = "../../shared/traces"
	apacheTrace = "apache-access.log"
	azureTrace  = "azure-llm-2023-conversation.csv"
)

func traceFile(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(tracesDir, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the real trace is not here: %v", err)
	}
	return path
}

func policy(t testing.TB, name string) *quota.Policy {
	t.Helper()
	p, err := quota.LookupPolicy(name)
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

// usual is the policy that tests run a workload with.
func usual(t testing.TB, m *Meta) *quota.Policy {
	t.Helper()
	for _, name := range []string{"agent-payments", "tenant-uploads"} {
		if p := policy(t, name); m.ServesPolicy(p) == nil {
			return p
		}
	}
	t.Fatalf("add a policy that %s serves", m.Name)
	return nil
}

// given are options by name, each followed by its value; "" leaves one out.
func given(pairs ...any) quota.Options {
	o := quota.Options{}
	for i := 0; i < len(pairs); i += 2 {
		if v := fmt.Sprint(pairs[i+1]); v != "" {
			o[pairs[i].(string)] = v
		}
	}
	return o
}

func build(t testing.TB, workload string, p Params) (Stream, Info) {
	t.Helper()
	m, err := Lookup(workload)
	if err != nil {
		t.Fatal(err)
	}
	if m.NeedsTrace && p.Options["trace"] == "" {
		p.Set("trace", "testdata/tiny.csv")
	}
	s, info, err := m.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return s, info
}

// closeTo fails if a share of n independent trials is further from its
// probability than chance explains: 5 standard deviations.
func closeTo(t *testing.T, what string, got, want float64, n int) {
	t.Helper()
	if sigma := math.Sqrt(want * (1 - want) / float64(n)); math.Abs(got-want) > 5*sigma {
		t.Errorf("%s: %.5f, want %.5f +- %.5f", what, got, want, 5*sigma)
	}
}
