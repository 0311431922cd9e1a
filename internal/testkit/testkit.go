// Package testkit has what the tests of many packages need of the product.
package testkit

import (
	"testing"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

// Strategy selects one strategy by its name and options, as the command line does.
func Strategy(t testing.TB, text string) strategies.Selection {
	t.Helper()
	selected, err := strategies.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(selected) != 1 {
		t.Fatalf("%q selects %d strategies", text, len(selected))
	}
	return selected[0]
}

// Policy is the policy with that name, or of a text such as "5 calls per rolling 1h".
func Policy(t testing.TB, text string) quota.Policy {
	t.Helper()
	policy, err := quota.LookupPolicy(text)
	if err != nil {
		t.Fatal(err)
	}
	return policy
}
