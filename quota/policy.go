package quota

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Policy is a cap: at most Limit units per subject and window, or of a bucket at
// most Limit at once.
type Policy struct {
	// Name is the public name, e.g. "user-links".
	Name string
	// Doc is one line for people.
	Doc string
	// Source is the design record that names the policy.
	Source string
	// Limit in units, per subject and window; the size of a bucket.
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

const megabyte = 1_000_000

var policies = []Policy{
	{Name: "user-links", Source: "ADR-008", Limit: 20, Unit: "links", Window: Window{Kind: CalendarMonth},
		Doc: "short links that a user may create"},
	{Name: "link-hits", Source: "ADR-009", Limit: 10_000, Unit: "hits", Window: Window{Kind: CalendarMonth},
		Doc: "times that a short link may be resolved"},
	{Name: "contact-form", Source: "ProjectEPU", Limit: 3, Unit: "submissions",
		Window: Window{Kind: Fixed, Length: time.Minute},
		Doc:    "contact form submissions of an address"},
	{Name: "login", Source: "ProjectEPU", Limit: 5, Unit: "attempts",
		Window: Window{Kind: Rolling, Length: 15 * time.Minute},
		Doc:    "login attempts of an identifier"},
	{Name: "receipt-email", Source: "ProjectEPU", Limit: 1, Unit: "e-mails",
		Window: Window{Kind: Rolling, Length: time.Hour},
		Doc:    "receipt e-mails to a user"},
	{Name: "guest-message", Source: "ProjectEPU", Limit: 3, Unit: "messages",
		Window: Window{Kind: Rolling, Length: 10 * time.Minute},
		Doc:    "messages of a guest session"},
	{Name: "agent-api", Source: "ADR-005", Limit: 1_000, Unit: "requests", Window: Window{Kind: CalendarHour},
		Doc: "API requests of an agent"},
	{Name: "agent-tokens", Source: "ADR-005", Limit: 500_000, Unit: "tokens", Window: Window{Kind: CalendarMonth},
		Doc: "model tokens of an agent", Costs: []int64{500, 1_000, 2_000}},
	{Name: "agent-spend", Source: "ADR-005", Limit: 50_000, Unit: "cents", Window: Window{Kind: CalendarMonth},
		Doc: "spend of an agent's tier", Costs: []int64{1, 5, 25}},
	{Name: "agent-payments", Source: "ADR-005", Limit: 12_000, Unit: "cents", Window: Window{Kind: CalendarDay},
		Doc: "payments that an agent may authorise", Costs: []int64{100, 500, 1_500}},
	{Name: "agent-sandboxes", Source: "ADR-005", Limit: 100, Unit: "sandboxes", Window: Window{Kind: Standing},
		Hold: 30 * time.Minute,
		Doc:  "sandboxes of an agent at the same time"},
	{Name: "agent-storage", Source: "ADR-005", Limit: 10_737_418_240, Unit: "bytes", Window: Window{Kind: Standing},
		Hold: 24 * time.Hour,
		Doc:  "stored bytes of an agent", Costs: []int64{10 * megabyte, 100 * megabyte, 500 * megabyte}},
	{Name: "tenant-uploads", Source: "ADR-RM-3", Limit: 1_000, Unit: "MB", Window: Window{Kind: Standing}, Hold: time.Hour,
		Doc: "stored files of a tenant", Costs: []int64{100, 150}},
}

// registered are the policies added by [RegisterPolicy].
var registered struct {
	mu       sync.RWMutex
	policies []Policy
}

// RegisterPolicy adds a policy to those that every command offers. It is called
// from init functions and panics if the policy is not valid, with all that is
// wrong, if its name begins with a digit, as texts of policies do, or if the name
// is taken.
func RegisterPolicy(policy Policy) {
	if err := policy.Validate(); err != nil {
		panic("quota.RegisterPolicy: policy " + policy.Name + ": " + err.Error())
	}
	if isText(policy.Name) {
		panic("quota.RegisterPolicy: policy " + policy.Name + ": a name does not begin with a digit")
	}
	registered.mu.Lock()
	defer registered.mu.Unlock()
	for _, r := range slices.Concat(policies, registered.policies) {
		if r.Name == policy.Name {
			panic("quota.RegisterPolicy: " + policy.Name + " is registered twice")
		}
	}
	registered.policies = append(registered.policies, policy)
}

// Policies returns the policies that the design records name, in their order,
// and then the registered ones. The slice is the caller's own.
func Policies() []Policy {
	registered.mu.RLock()
	defer registered.mu.RUnlock()
	return slices.Concat(policies, registered.policies)
}

// LookupPolicy returns the policy with the given name, or the policy that the
// text describes, see [ParsePolicy]. The error lists the names that exist.
func LookupPolicy(name string) (Policy, error) {
	if isText(name) {
		return ParsePolicy(name)
	}
	var names []string
	for _, policy := range Policies() {
		if policy.Name == name {
			return policy, nil
		}
		names = append(names, policy.Name)
	}
	return Policy{}, Unknown("policy", name, names, ", or a text such as \"5 attempts per rolling 15m\"")
}

// isText tells the text of a policy, which begins with its limit, from a name.
func isText(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && text[0] >= '0' && text[0] <= '9'
}

// LeastCost is the least of the policy's costs; 1 if it names none.
func (p *Policy) LeastCost() int64 {
	if len(p.Costs) == 0 {
		return 1
	}
	return slices.Min(p.Costs)
}
