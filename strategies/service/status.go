package service

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// The statuses that answers have.
const firstStatus, lastStatus = 100, 599

// statuses are codes of answers.
type statuses [lastStatus - firstStatus + 1]bool

// has reports whether the code is among them.
func (s *statuses) has(code int) bool {
	return code >= firstStatus && code <= lastStatus && s[code-firstStatus]
}

// parseStatuses reads codes, classes and ranges with a plus between them, e.g.
// "2xx+304" or "429+500-503".
func parseStatuses(text string) (*statuses, error) {
	var s statuses
	if text == "none" {
		return &s, nil
	}
	for part := range strings.SplitSeq(text, "+") {
		from, to, ranged := strings.Cut(part, "-")
		if class, ok := strings.CutSuffix(part, "xx"); ok {
			from, to, ranged = class+"00", class+"99", true
		}
		if !ranged {
			to = from
		}
		a, aerr := strconv.Atoi(from)
		b, berr := strconv.Atoi(to)
		if aerr != nil || berr != nil || a < firstStatus || b > lastStatus || a > b {
			return nil, fmt.Errorf("%q are no statuses: give codes from 100 to 599, classes or ranges with a plus between "+
				"them, e.g. 2xx, 429+503 or 500-504, or none", text)
		}
		for code := a; code <= b; code++ {
			s[code-firstStatus] = true
		}
	}
	return &s, nil
}

func checkStatuses(text string) error {
	_, err := parseStatuses(text)
	return err
}

// checkSubjectHeader refuses headers that the client writes itself, and lists.
func checkSubjectHeader(text string) error {
	switch http.CanonicalHeaderKey(text) {
	case "Host", "Content-Length", "Transfer-Encoding", "Trailer", "Connection", "Authorization":
		return fmt.Errorf("%s cannot carry a subject: name another header, e.g. X-Api-Key", text)
	}
	if strings.Contains(text, "+") {
		return errors.New("one header carries the subject, e.g. X-Api-Key")
	}
	return checkNames(text)
}

// checkNames checks the names of headers, with a plus between them; none is allowed.
func checkNames(text string) error {
	for name := range strings.SplitSeq(text, "+") {
		if text != "" && (name == "" || strings.ContainsFunc(name, func(r rune) bool {
			return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		})) {
			return fmt.Errorf("%q are no names of headers: write e.g. RateLimit-Remaining+X-RateLimit-Remaining", text)
		}
	}
	return nil
}

// anyNumber is the value of a promise that bounds nothing.
const anyNumber = "any"

// checkPromise checks a number of units, or any.
func checkPromise(text string) error {
	if n, err := strconv.ParseInt(text, 10, 64); text != anyNumber && (err != nil || n < 0) {
		return errors.New("give a number of requests from 0, or any")
	}
	return nil
}

// promised is the bound that a valid promise makes; unbounded if it makes none.
func promised(text string, unbounded int64) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return unbounded
	}
	return n
}
