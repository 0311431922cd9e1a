package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/strategies"
)

// ActionKind is what a client does in one step of its script.
type ActionKind string

// The actions.
const (
	// Take asks for units. A rejected client goes on to its next take.
	Take ActionKind = "take"
	// Commit settles the last admitted take at Units, or at what it asked for.
	Commit ActionKind = "commit"
	// Refund gives the last admitted take back. A client that is answered an error
	// tries once more, as an application must that cannot know what happened.
	Refund ActionKind = "refund"
	// Limit gives the subject another limit of Units, as an operator would: requests that
	// begin from then on carry it, and a strategy that keeps limits itself is told.
	Limit ActionKind = "limit"
)

// settles reports whether the action is about the take before it.
func (k ActionKind) settles() bool { return k == Commit || k == Refund }

// Action is one step of a script.
type Action struct {
	Kind ActionKind `json:"kind"`
	// Units of a take, the actual units of a commit (0 means those taken), and the
	// limit from then on.
	Units int64 `json:"units,omitempty"`
}

// Script is what one client does, in order. Commits and refunds of a take that
// was not admitted are left out.
type Script []Action

// Settles reports whether the take at that position is followed by a commit or a
// refund.
func (s Script) Settles(take int) bool {
	for _, a := range s[take+1:] {
		if a.Kind != Limit {
			return a.Kind.settles()
		}
	}
	return false
}

// Operates reports whether the script changes the limit.
func (s Script) Operates() bool {
	return slices.ContainsFunc(s, func(a Action) bool { return a.Kind == Limit })
}

// String is the form that [ParseScripts] reads.
func (s Script) String() string {
	parts := make([]string, len(s))
	for i, a := range s {
		parts[i] = string(a.Kind)
		if a.Kind == Take && a.Units != 1 || a.Kind == Commit && a.Units != 0 || a.Kind == Limit {
			parts[i] += "=" + strconv.FormatInt(a.Units, 10)
		}
	}
	return strings.Join(parts, ",")
}

// ParseScripts reads scripts such as "take=5,refund;take": one per client,
// separated by semicolons, the last of them for all further clients.
func ParseScripts(text string) ([]Script, error) {
	if text == "" {
		return nil, nil
	}
	var out []Script
	for one := range strings.SplitSeq(text, ";") {
		var s Script
		for word := range strings.SplitSeq(one, ",") {
			name, units, given := strings.Cut(strings.TrimSpace(word), "=")
			a := Action{Kind: ActionKind(name)}
			if a.Kind == Take {
				a.Units = 1
			}
			known := a.Kind == Take || a.Kind.settles() || a.Kind == Limit && given
			if given {
				n, err := strconv.ParseInt(units, 10, 64)
				known = known && err == nil && n >= 1 && a.Kind != Refund
				a.Units = n
			}
			if !known {
				return nil, fmt.Errorf("script action %q: write take, take=UNITS, commit, commit=UNITS, refund or limit=UNITS", word)
			}
			s = append(s, a)
		}
		out = append(out, s)
	}
	return out, nil
}

// MaxActions bounds a script: more would never end.
const MaxActions = 16

// MaxUnits bounds what one action asks for, so that no sum of them overflows.
const MaxUnits = 1 << 40

// Validate reports why the strategy cannot run the script.
func (s Script) Validate(m *strategies.Meta) error {
	if len(s) == 0 || len(s) > MaxActions {
		return fmt.Errorf("a script of %d actions: give 1 to %d", len(s), MaxActions)
	}
	for i, a := range s {
		switch {
		case (a.Kind == Take || a.Kind == Limit) && a.Units < 1 || a.Units < 0 || a.Units > MaxUnits:
			return fmt.Errorf("a %s of %d units: give at most %d", a.Kind, a.Units, int64(MaxUnits))
		case a.Kind.settles() && i == 0:
			return fmt.Errorf("script %q begins with a %s: there is nothing to settle yet", s, a.Kind)
		case a.Kind == Refund && !m.GivesBack:
			return fmt.Errorf("strategy %s takes no units back, which the script %q asks for", m.Name, s)
		}
	}
	return nil
}
