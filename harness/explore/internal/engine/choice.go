package engine

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// ChoiceKind is a kind of step that a schedule can take.
type ChoiceKind byte

// The kinds of step.
const (
	StepActor  ChoiceKind = 's' // an actor goes on to its next operation
	PromptJob  ChoiceKind = 'p' // a periodic job's round begins
	CrashCall  ChoiceKind = 'k' // one caller dies
	CrashHost  ChoiceKind = 'i' // an instance dies with its callers, jobs and memory, and starts anew
	LoseReply  ChoiceKind = 'l' // the command took effect, the caller sees an error
	RetryReply ChoiceKind = 'r' // the client library sends the command again
	FailBefore ChoiceKind = 'o' // the store cannot be reached: no effect, an error
	TickClock  ChoiceKind = 't' // time moves on to a deadline
	EvictKey   ChoiceKind = 'e' // the store drops a key
	Ask        ChoiceKind = 'q' // all scripts have ended, and one more client asks for one unit without a break
)

// Choice is one step of a schedule. It means the same in every run of the
// schedule that it is part of.
type Choice struct {
	Kind ChoiceKind
	// ID is an actor's, or an instance's for CrashHost, or a deadline's for
	// TickClock: see the constants below.
	ID  int
	Key string
}

// Fault is the one that the step injects; empty where it injects none.
func (c Choice) Fault() quota.Fault {
	switch c.Kind {
	case CrashCall, CrashHost:
		return quota.FaultCrash
	case LoseReply:
		return quota.FaultLostReply
	case RetryReply:
		return quota.FaultRetry
	case FailBefore:
		return quota.FaultOutage
	case TickClock:
		return quota.FaultClock
	case EvictKey:
		return quota.FaultEviction
	default:
		return ""
	}
}

// Deadlines to tick to.
const (
	TickExpiry = iota // the next key expires
	TickWindow        // the next window of any clock ends
	TickWaiter        // the next sleep ends, or the next job is due
	TickHalf          // half of a window passes, or of the time for one unit of a bucket
	TickBefore        // the millisecond before the next window of any clock ends
	TickKinds
)

// String is the form that a token holds.
func (c Choice) String() string {
	if c.Kind == EvictKey {
		return string(rune(c.Kind)) + url.QueryEscape(c.Key) // keys may hold blanks
	}
	return string(rune(c.Kind)) + strconv.Itoa(c.ID)
}

// ParseChoice reads what [Choice.String] writes.
func ParseChoice(s string) (Choice, error) {
	if s == "" {
		return Choice{}, fmt.Errorf("a step without a kind")
	}
	c := Choice{Kind: ChoiceKind(s[0])}
	if c.Kind == EvictKey {
		key, err := url.QueryUnescape(s[1:])
		c.Key = key
		if err != nil || c.String() != s {
			return Choice{}, fmt.Errorf("step %q names no key", s)
		}
		return c, nil
	}
	if !strings.ContainsRune("spkilrotq", rune(c.Kind)) {
		return Choice{}, fmt.Errorf("step %q is of no known kind", s)
	}
	n, err := strconv.Atoi(s[1:])
	if err != nil || n < 0 || c.Kind == TickClock && n >= TickKinds {
		return Choice{}, fmt.Errorf("step %q names no actor", s)
	}
	c.ID = n
	if c.String() != s {
		return Choice{}, fmt.Errorf("step %q is written in another way", s)
	}
	return c, nil
}

// ShortDuration drops the zeros at the end: 5m instead of 5m0s.
func ShortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
