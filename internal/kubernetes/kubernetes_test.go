package kubernetes

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/testenv"
)

// TestKubernetesManifests: the pods of a run have a coordinator, a token and URLs of stores, and those of parts have a claim.
func TestKubernetesManifests(t *testing.T) {
	for name, j := range map[string]Job{
		"run": {Name: "hot", Command: "run", Plan: "strategy:\n  - \"<&>\"\n", Parts: 3, Coordinated: true, Token: "t0ken",
			Stores: []string{"postgres", "redis"}, Secret: "urls", Image: "example.org/q:1", CPU: "500m", Memory: "1Gi", TTL: 3600},
		"parts": {Name: "cold", Command: "sim", Plan: "seed: 1\n", Parts: 8, Image: "q", Claim: "data", CPU: "1", Memory: "2Gi", TTL: 60},
	} {
		j.Variable = func(kind string) string { return "URL_OF_" + strings.ToUpper(kind) }
		var b strings.Builder
		if err := j.Write(&b); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name+".golden")
		if testenv.Update() {
			if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, []byte(b.String()), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if b.String() != string(want) {
			t.Errorf("the manifests differ from %s; if they should, run with -update\n%s", path, &b)
		}
	}
}

// TestKubernetesNames: texts at the limits of what Kubernetes takes, and beyond them.
func TestKubernetesNames(t *testing.T) {
	for _, c := range []struct {
		check       func(string) error
		take, leave []string
	}{
		{CheckName, []string{"a", "a-1", strings.Repeat("a", 40)}, []string{"", "1a", "a-", "-a", "A", "a.b", "a\n", strings.Repeat("a", 41)}},
		{CheckObject, []string{"1", "my.urls-2", strings.Repeat("a", 253)}, []string{"", ".a", "a.", "-a", "A", "a_b", strings.Repeat("a", 254)}},
		{CheckQuantity, []string{"2", "0.5", "500m", "1k", "3Ki", "64Mi", "1Gi", "2Ti", "5M", "6G", "7T"}, []string{"", "m", "1.", "1GiB", "-1", " 1", "1e"}},
	} {
		for _, text := range c.take {
			if err := c.check(text); err != nil {
				t.Error(err)
			}
		}
		for _, text := range c.leave {
			if c.check(text) == nil {
				t.Errorf("%q is taken", text)
			}
		}
	}
}
