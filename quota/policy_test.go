package quota

import (
	"strings"
	"testing"
	"time"
)

// The policies as the records have them: name, cap, source.
func TestPoliciesOfTheRecords(t *testing.T) {
	want := []struct{ name, text, source string }{
		{"user-links", "20 links per calendar month", "ADR-008"},
		{"link-hits", "10000 hits per calendar month", "ADR-009"},
		{"contact-form", "3 submissions per fixed 1m", "ProjectEPU"},
		{"login", "5 attempts per rolling 15m", "ProjectEPU"},
		{"receipt-email", "1 e-mail per rolling 1h", "ProjectEPU"},
		{"guest-message", "3 messages per rolling 10m", "ProjectEPU"},
		{"agent-api", "1000 requests per calendar hour", "ADR-005"},
		{"agent-tokens", "500000 tokens per calendar month", "ADR-005"},
		{"agent-spend", "50000 cents per calendar month", "ADR-005"},
		{"agent-payments", "12000 cents per calendar day", "ADR-005"},
		{"agent-sandboxes", "100 sandboxes at a time", "ADR-005"},
		{"agent-storage", "10737418240 bytes at a time", "ADR-005"},
		{"tenant-uploads", "1000 MB at a time", "ADR-RM-3"},
	}
	all := Policies()
	if len(all) != len(want) {
		t.Fatalf("%d policies, want %d", len(all), len(want))
	}
	for i, p := range all {
		if p.Name != want[i].name || p.String() != want[i].text || p.Source != want[i].source {
			t.Errorf("policy %d is %s: %s (record %s), want %v", i, p.Name, p, p.Source, want[i])
		}
		got, err := LookupPolicy(p.Name)
		if err != nil || got.Name != p.Name {
			t.Errorf("looking up %s: %v, %v", p.Name, got.Name, err)
		}
	}
}

func TestPoliciesMakeSense(t *testing.T) {
	for _, p := range Policies() {
		if p.Doc == "" || strings.HasSuffix(p.Doc, ".") || strings.ContainsAny(p.Name, ",:= ") {
			t.Errorf("%s: documented as %q", p.Name, p.Doc)
		}
		if p.Limit < 1 || p.Unit == "" {
			t.Errorf("%s: limit of %d %q", p.Name, p.Limit, p.Unit)
		}
		for _, c := range p.Costs {
			if c < 1 || c > p.Limit {
				t.Errorf("%s: a request of %d never fits into %d", p.Name, c, p.Limit)
			}
		}
		if w := p.Window; (w.Kind == Fixed || w.Kind == Rolling) != (w.Length > 0) {
			t.Errorf("%s: a %v window of length %v", p.Name, w.Kind, w.Length)
		}
		if (p.Window.Kind == Standing) != (p.Hold > 0) {
			t.Errorf("%s: a %v policy whose units are held for %v", p.Name, p.Window.Kind, p.Hold)
		}
	}
}

func TestPoliciesAreTheCallersOwn(t *testing.T) {
	mine := Policies()
	mine[0].Limit = -1
	if Policies()[0].Limit == -1 {
		t.Error("changing the list changed the policies")
	}
	p, err := LookupPolicy("user-links")
	if err != nil {
		t.Fatal(err)
	}
	p.Limit = -1
	if again, _ := LookupPolicy("user-links"); again.Limit == -1 {
		t.Error("changing a policy changed it for others")
	}
}

func TestUnknownPolicyListsTheNames(t *testing.T) {
	_, err := LookupPolicy("user-link")
	if err == nil {
		t.Fatal("found a policy that does not exist")
	}
	for _, want := range []string{`"user-link"`, "user-links", "tenant-uploads"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
}

func TestPolicyStringOfOtherWindows(t *testing.T) {
	p := Policy{Limit: 7, Unit: "units", Window: Window{Kind: Fixed, Length: 90 * time.Second}}
	if got := p.String(); got != "7 units per fixed 1m30s" {
		t.Errorf("prints as %q", got)
	}
}
