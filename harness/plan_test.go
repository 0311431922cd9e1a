package harness

import "testing"

func TestParseOutage(t *testing.T) {
	o, err := ParseOutage("redis:0.25-0.5")
	if err != nil || o.Store != "redis" || o.From != 0.25 || o.To != 0.5 || o.String() != "redis:0.25-0.5" {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range []string{"", "redis", "redis:1", "redis:0.5-0.2", "redis:-1-1", "redis:0.2-1.2", "redis:a-b", "redis:NaN-1"} {
		if _, err := ParseOutage(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
