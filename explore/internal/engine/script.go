package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/quota"
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
	// Other is the number of another subject that a take is for, from 1; 0 is the one that all clients share, and [Many]
	// are thousands, each of which takes the units.
	Other int `json:"other,omitempty"`
}

// MaxOthers bounds the other subjects of a script.
const MaxOthers = 9

// Many is the number that stands for thousands of other subjects.
const Many = MaxOthers + 1

const manyText = "many"

// SubjectOf is the name of the subject that all clients share if other is 0, or of another one, which begins with it.
func SubjectOf(other int) quota.Subject {
	if other == 0 {
		return Subject
	}
	return Subject + quota.Subject(strconv.Itoa(other))
}

// Script is what one client does, in order. Commits and refunds of a take that
// was not admitted are left out.
type Script []Action

// Settles reports whether the take at that position is followed by a commit or a
// refund.
func (s Script) Settles(take int) bool {
	for _, action := range s[take+1:] {
		if action.Kind != Limit {
			return action.Kind.settles()
		}
	}
	return false
}

// Others reports whether the script has takes of other subjects.
func (s Script) Others() bool {
	return slices.ContainsFunc(s, func(action Action) bool { return action.Other > 0 })
}

// Crowds reports whether thousands of other subjects take part.
func (s Script) Crowds() bool {
	return slices.ContainsFunc(s, func(action Action) bool { return action.Other == Many })
}

// Operates reports whether the script changes the limit.
func (s Script) Operates() bool {
	return slices.ContainsFunc(s, func(action Action) bool { return action.Kind == Limit })
}

// String is the form that [ParseScripts] reads.
func (s Script) String() string {
	parts := make([]string, len(s))
	for i, action := range s {
		parts[i] = string(action.Kind)
		switch {
		case action.Other == Many:
			parts[i] += "@" + manyText
		case action.Other > 0:
			parts[i] += "@" + strconv.Itoa(action.Other)
		}
		if action.Kind == Take && action.Units != 1 || action.Kind == Commit && action.Units != 0 || action.Kind == Limit {
			parts[i] += "=" + strconv.FormatInt(action.Units, 10)
		}
	}
	return strings.Join(parts, ",")
}

// ParseScripts reads scripts such as "take=5,refund;take": one per client,
// separated by semicolons, the last of them for all further clients. "take@1" is a take of another subject, and
// "take@many" one of each of thousands.
func ParseScripts(text string) ([]Script, error) {
	if text == "" {
		return nil, nil
	}
	var out []Script
	for one := range strings.SplitSeq(text, ";") {
		var script Script
		for word := range strings.SplitSeq(one, ",") {
			action, err := parseAction(word)
			if err != nil {
				return nil, err
			}
			script = append(script, action)
		}
		out = append(out, script)
	}
	return out, nil
}

func parseAction(word string) (Action, error) {
	name, units, given := strings.Cut(strings.TrimSpace(word), "=")
	name, other, ofOther := strings.Cut(name, "@")
	action := Action{Kind: ActionKind(name)}
	if action.Kind == Take {
		action.Units = 1
	}
	known := action.Kind == Take || action.Kind.settles() || action.Kind == Limit && given
	if given {
		n, err := strconv.ParseInt(units, 10, 64)
		known = known && err == nil && n >= 1 && action.Kind != Refund
		action.Units = n
	}
	switch {
	case ofOther && other == manyText:
		known = known && action.Kind == Take
		action.Other = Many
	case ofOther:
		n, err := strconv.Atoi(other)
		known = known && err == nil && n >= 1 && n <= MaxOthers && action.Kind == Take
		action.Other = n
	}
	if !known {
		return action, fmt.Errorf("script action %q: write take, take=UNITS, take@1 (of another subject), "+
			"take@many (of thousands), commit, commit=UNITS, refund or limit=UNITS", word)
	}
	return action, nil
}

// MaxActions bounds a script: more would never end. The client that asks after all others has as many.
const MaxActions = bounds.MaxAsks

// MaxUnits bounds what one action asks for, so that no sum of them overflows.
const MaxUnits = 1 << 40

// Validate reports why the strategy cannot run the script.
func (s Script) Validate(meta *strategies.Meta) error {
	if len(s) == 0 || len(s) > MaxActions {
		return fmt.Errorf("a script of %d actions: give 1 to %d", len(s), MaxActions)
	}
	for i, action := range s {
		switch {
		case (action.Kind == Take || action.Kind == Limit) && action.Units < 1 || action.Units < 0 || action.Units > MaxUnits:
			return fmt.Errorf("a %s of %d units: give at most %d", action.Kind, action.Units, int64(MaxUnits))
		case action.Other == Many && (i == 0 || action.Units != 1):
			return fmt.Errorf("script %q: a take@many comes after another take, and is of one unit", s)
		case action.Other > 0 && s.Settles(i):
			return fmt.Errorf("script %q settles a take of another subject: only those of the shared one are settled", s)
		case action.Kind.settles() && i == 0:
			return fmt.Errorf("script %q begins with a %s: there is nothing to settle yet", s, action.Kind)
		case action.Kind == Refund && !meta.GivesBack:
			return fmt.Errorf("strategy %s takes no units back, which the script %q asks for", meta.Name, s)
		}
	}
	return nil
}
