package text

import (
	"testing"

	"github.com/quotabench/quotabench/results"
)

func TestPolicy(t *testing.T) {
	s := results.Summary{Policy: "agent-api",
		Params: results.Params{Quota: results.Quota{Limit: 50, Unit: "requests", Window: "rolling 1h0m0s"}}}
	if got := Policy(&s); got != "agent-api: 50 requests, rolling 1h" {
		t.Error(got)
	}
	s.Params.PolicyLimit = 1000
	if got := Policy(&s); got != "agent-api: 1,000 requests, rolling 1h, here with a limit of 50" {
		t.Error(got)
	}
}
