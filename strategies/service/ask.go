package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quotabench/quotabench/quota"
)

// subject and asked stand in a URL for the subject of a request and its units.
const subject, asked = "{subject}", "{units}"

// asker asks one URL for decisions.
type asker struct {
	http  *http.Client
	clock quota.Clock
	// prefix begins the names of subjects, so that no two runs share one.
	prefix, method     string
	admitted, rejected *statuses
	// header that carries the subject; "" for none.
	header           string
	remaining, retry []string // names of headers
	timeout          time.Duration
	closes           bool // each request has a connection of its own
	login            func(*http.Request)
}

// errSentAgain is a decision that may not be the only one: Go's client repeats a GET if
// a connection that was in use before ends without an answer.
var errSentAgain = errors.New("a connection ended before its answer and the request was sent again, " +
	"so the service may have counted it twice; keep-alive=false avoids that")

// ask sends one request, and makes a decision of the answer.
func (a *asker) ask(ctx context.Context, template string, req quota.Request) (quota.Decision, error) {
	if req.Units != 1 && !strings.Contains(template, asked) {
		return quota.Decision{}, fmt.Errorf("a request of %d units: a service counts a request as 1, unless its URL has "+
			"{units}", req.Units)
	}
	if a.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.timeout)
		defer cancel()
	}
	var sent atomic.Int32
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Add(1) }})
	name := a.prefix + string(req.Subject)
	r, err := http.NewRequestWithContext(ctx, a.method, fill(template, name, req.Units), nil)
	if err != nil {
		return quota.Decision{}, err
	}
	r.Close = a.closes
	if a.header != "" {
		r.Header.Set(a.header, url.QueryEscape(name))
	}
	if a.login != nil {
		a.login(r)
	}
	resp, err := a.http.Do(r)
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		err = failed.Err // its text has the URL, which may hold a key
	}
	if err != nil {
		return quota.Decision{}, err
	}
	// A body that is not read to its end keeps the connection from being used again.
	_, err = io.Copy(io.Discard, resp.Body)
	if cerr := resp.Body.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return quota.Decision{}, fmt.Errorf("read the answer: %w", err)
	}
	if sent.Load() > 1 {
		return quota.Decision{}, errSentAgain
	}
	return a.decide(resp)
}

// decide makes a decision of an answer.
func (a *asker) decide(resp *http.Response) (quota.Decision, error) {
	decision := quota.Decision{Tier: TierService, Remaining: a.left(resp.Header)}
	switch {
	case a.admitted.has(resp.StatusCode):
		decision.Admitted = true
	case a.rejected.has(resp.StatusCode):
		decision.RetryAfter = a.wait(resp.Header)
	default:
		return quota.Decision{}, fmt.Errorf("the service answers with status %d, which means neither admitted nor rejected",
			resp.StatusCode)
	}
	return decision, nil
}

// left is what the answer says is left; -1 if it says nothing.
func (a *asker) left(header http.Header) int64 {
	for _, name := range a.remaining {
		if n, err := strconv.ParseInt(strings.TrimSpace(header.Get(name)), 10, 64); err == nil && n >= 0 {
			return n
		}
	}
	return -1
}

// wait is how long the answer says to wait, in seconds or until a date; 0 if it says
// nothing.
func (a *asker) wait(header http.Header) time.Duration {
	for _, name := range a.retry {
		text := strings.TrimSpace(header.Get(name))
		if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 && n < quota.MaxLength.Seconds() {
			return time.Duration(n * float64(time.Second))
		}
		if t, err := http.ParseTime(text); err == nil {
			return max(0, t.Sub(a.clock.Now()))
		}
	}
	return 0
}

// fill puts the subject, escaped as the place asks for, and the units into a URL.
func fill(template, name string, number int64) string {
	template = strings.ReplaceAll(template, asked, strconv.FormatInt(number, 10))
	path, query, asks := strings.Cut(template, "?")
	path = strings.ReplaceAll(path, subject, url.PathEscape(name))
	if !asks {
		return path
	}
	return path + "?" + strings.ReplaceAll(query, subject, url.QueryEscape(name))
}

// names are the headers of a list.
func names(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, "+")
}

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
			from = class + "00"
			to = class + "99"
			ranged = true
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

// statusesOf are those of an option, whose text was checked.
func statusesOf(text string) *statuses {
	s, _ := parseStatuses(text)
	return s
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

// checkBound checks a number of units, or any.
func checkBound(text string) error {
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
