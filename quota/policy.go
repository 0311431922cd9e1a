package quota

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Policy is a cap: at most Limit units per subject and window.
type Policy struct {
	// Name is the public name, e.g. "user-links".
	Name string
	// Doc is one line for people.
	Doc string
	// Source is the design record that names the policy.
	Source string
	// Limit in units, per subject and window.
	Limit int64
	// Unit is the plural name of what is counted, e.g. "requests".
	Unit   string
	Window Window
	// Costs are the units that one request of this policy typically asks for;
	// workloads draw from them evenly. Empty means 1.
	Costs []int64
	// Hold is how long a standing policy's units are typically held.
	Hold time.Duration
}

// String renders the cap as people say it, e.g. "20 links per calendar month".
func (p Policy) String() string {
	s := fmt.Sprintf("%d %s", p.Limit, p.Unit)
	switch p.Window.Kind {
	case Standing:
		return s + " at a time"
	case CalendarMonth:
		return s + " per calendar month"
	case CalendarDay:
		return s + " per calendar day"
	case CalendarHour:
		return s + " per calendar hour"
	case Rolling:
		return s + " per rolling " + p.Window.Length.String()
	default:
		return s + " per fixed " + p.Window.Length.String()
	}
}

const megabyte = 1_000_000

var policies = []Policy{
	{Name: "user-links", Source: "000", Limit: 20, Unit: "links", Window: Window{Kind: CalendarMonth},
		Doc: "short links that a user may create"},
	{Name: "link-hits", Source: "001", Limit: 10_000, Unit: "hits", Window: Window{Kind: CalendarMonth},
		Doc: "times that a short link may be resolved"},
	{Name: "contact-form", Source: "002", Limit: 3, Unit: "submissions", Window: Window{Kind: Fixed, Length: time.Minute},
		Doc: "contact form submissions of an address"},
	{Name: "login", Source: "002", Limit: 5, Unit: "attempts", Window: Window{Kind: Rolling, Length: 15 * time.Minute},
		Doc: "login attempts of an identifier"},
	{Name: "receipt-email", Source: "002", Limit: 1, Unit: "e-mails", Window: Window{Kind: Rolling, Length: time.Hour},
		Doc: "receipt e-mails to a user"},
	{Name: "guest-message", Source: "002", Limit: 3, Unit: "messages", Window: Window{Kind: Rolling, Length: 10 * time.Minute},
		Doc: "messages of a guest session"},
	{Name: "agent-api", Source: "003", Limit: 1_000, Unit: "requests", Window: Window{Kind: CalendarHour},
		Doc: "API requests of an agent"},
	{Name: "agent-tokens", Source: "003", Limit: 500_000, Unit: "tokens", Window: Window{Kind: CalendarMonth},
		Doc: "model tokens of an agent", Costs: []int64{500, 1_000, 2_000}},
	{Name: "agent-spend", Source: "003", Limit: 50_000, Unit: "cents", Window: Window{Kind: CalendarMonth},
		Doc: "spend of an agent's tier", Costs: []int64{1, 5, 25}},
	{Name: "agent-payments", Source: "003", Limit: 12_000, Unit: "cents", Window: Window{Kind: CalendarDay},
		Doc: "payments that an agent may authorise", Costs: []int64{100, 500, 1_500}},
	{Name: "agent-sandboxes", Source: "003", Limit: 100, Unit: "sandboxes", Window: Window{Kind: Standing}, Hold: 30 * time.Minute,
		Doc: "sandboxes of an agent at the same time"},
	{Name: "agent-storage", Source: "003", Limit: 10_737_418_240, Unit: "bytes", Window: Window{Kind: Standing}, Hold: 24 * time.Hour,
		Doc: "stored bytes of an agent", Costs: []int64{10 * megabyte, 100 * megabyte, 500 * megabyte}},
	{Name: "tenant-uploads", Source: "004", Limit: 1_000, Unit: "MB", Window: Window{Kind: Standing}, Hold: time.Hour,
		Doc: "stored files of a tenant", Costs: []int64{100, 150}},
}

// Policies returns the policies that the design records name, in their order.
// The slice is the caller's own.
func Policies() []Policy { return slices.Clone(policies) }

// LookupPolicy returns the policy with the given name. The error lists the names
// that exist.
func LookupPolicy(name string) (Policy, error) {
	names := make([]string, len(policies))
	for i, p := range policies {
		if p.Name == name {
			return p, nil
		}
		names[i] = p.Name
	}
	return Policy{}, fmt.Errorf("unknown policy %q: one of %s", name, strings.Join(names, ", "))
}
