package hardened

import (
	"strconv"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// account is one agent's use under one policy in one window.
type account struct {
	subject quota.Subject
	policy  string
	window  int64
	// limit of the policy in units. An agent's own, where an operator has set one, is
	// in the database and takes its place.
	limit int64
	// ends is when the window does; zero is never.
	ends time.Time
}

func accountAt(p *quota.Policy, s quota.Subject, now time.Time) account {
	span := p.Window.At(now)
	a := account{subject: s, policy: p.Name, window: span.Index, limit: p.Limit}
	if p.Window.Kind.Tumbling() {
		a.ends = span.End
	}
	return a
}

// key of the account's hash.
func (a account) key(prefix string) string {
	return prefix + "escrow:" + a.policy + ":" + strconv.FormatInt(a.window, 10) + ":" + string(a.subject)
}

// grace is how long a hash outlives its window, for requests that come late.
const grace = 5 * time.Second

// expiry is when the hash goes, in milliseconds since 1970; 0 is never.
func (a account) expiry() int64 {
	if a.ends.IsZero() {
		return 0
	}
	return a.ends.Add(grace).UnixMilli()
}
