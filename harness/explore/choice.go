package explore

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// choiceKind is a kind of step that a schedule can take.
type choiceKind byte

const (
	stepActor  choiceKind = 's' // an actor goes on to its next operation
	promptJob  choiceKind = 'p' // a periodic job's round begins
	crashCall  choiceKind = 'k' // one caller dies
	crashHost  choiceKind = 'i' // an instance dies with its callers, jobs and memory, and starts anew
	loseReply  choiceKind = 'l' // the command took effect, the caller sees an error
	retryReply choiceKind = 'r' // the client library sends the command again
	failBefore choiceKind = 'o' // the store cannot be reached: no effect, an error
	tickClock  choiceKind = 't' // time moves on to a deadline
	evictKey   choiceKind = 'e' // the store drops a key
)

// choice is one step of a schedule. It means the same in every run of the
// schedule that it is part of.
type choice struct {
	kind choiceKind
	// id is an actor's, or an instance's for crashHost, or a deadline's for
	// tickClock: see the constants below.
	id  int
	key string
}

// Deadlines to tick to.
const (
	tickExpiry = iota // the next key expires
	tickWindow        // the next window of any clock ends
	tickWaiter        // the next sleep ends, or the next job is due
	tickKinds
)

// String is the form that a token holds.
func (c choice) String() string {
	if c.kind == evictKey {
		return string(rune(c.kind)) + url.QueryEscape(c.key) // keys may hold blanks
	}
	return string(rune(c.kind)) + strconv.Itoa(c.id)
}

func parseChoice(s string) (choice, error) {
	if s == "" {
		return choice{}, fmt.Errorf("a step without a kind")
	}
	c := choice{kind: choiceKind(s[0])}
	if c.kind == evictKey {
		key, err := url.QueryUnescape(s[1:])
		c.key = key
		if err != nil || c.String() != s {
			return choice{}, fmt.Errorf("step %q names no key", s)
		}
		return c, nil
	}
	if !strings.ContainsRune("spkilrot", rune(c.kind)) {
		return choice{}, fmt.Errorf("step %q is of no known kind", s)
	}
	n, err := strconv.Atoi(s[1:])
	if err != nil || n < 0 || c.kind == tickClock && n >= tickKinds {
		return choice{}, fmt.Errorf("step %q names nobody", s)
	}
	c.id = n
	if c.String() != s {
		return choice{}, fmt.Errorf("step %q is written in another way", s)
	}
	return c, nil
}
