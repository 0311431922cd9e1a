package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/results/answer"
)

// value is what a setting holds. It is read from a flag and from a configuration
// file by the same method, so that both have the same bounds and the same errors:
// Set returns an error that says what to give.
type value interface {
	pflag.Value
	// holds reports whether a scalar of YAML can be such a value at all.
	holds(scalar) bool
	// wanted says what to give, in the imperative.
	wanted() string
}

// scalar is a kind of value in a YAML file.
type scalar string

const (
	scalarNumber scalar = "a number"
	scalarText   scalar = "text"
	scalarBool   scalar = "a boolean"
)

// number is a value with an order and bounds.
type number[T cmp.Ordered] struct {
	p         *T
	low, high T
	kind      string // for help texts
	wants     string
	parse     func(string) (T, error)
	format    func(T) string
	scalars   []scalar
}

func (n *number[T]) Set(text string) error {
	v, err := n.parse(text)
	within := v >= n.low && v <= n.high // which NaN is not
	if err != nil || !within {
		return errors.New(n.wants)
	}
	*n.p = v
	return nil
}

func (n *number[T]) String() string      { return n.format(*n.p) }
func (n *number[T]) Type() string        { return n.kind }
func (n *number[T]) holds(s scalar) bool { return slices.Contains(n.scalars, s) }
func (n *number[T]) wanted() string      { return n.wants }
func wantsRange(what, low, high string) string {
	return fmt.Sprintf("give %s from %s to %s", what, low, high)
}

// whole is a whole number.
func whole(p *int, low, high int) value {
	return &number[int]{
		p: p, low: low, high: high, kind: "int", scalars: []scalar{scalarNumber}, parse: strconv.Atoi, format: strconv.Itoa,
		wants: wantsRange("a whole number", strconv.Itoa(low), strconv.Itoa(high)),
	}
}

// count is a whole number that may be large.
func count(p *int64, low, high int64) value {
	format := func(v int64) string { return strconv.FormatInt(v, 10) }
	return &number[int64]{
		p: p, low: low, high: high, kind: "int", scalars: []scalar{scalarNumber},
		wants: wantsRange("a whole number", format(low), format(high)), format: format,
		parse: func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) },
	}
}

// seed is any whole number of 64 bits.
func seed(p *uint64) value {
	return &number[uint64]{
		p: p, high: math.MaxUint64, kind: "int", scalars: []scalar{scalarNumber},
		wants:  fmt.Sprintf("give a whole number from 0 to %d", uint64(math.MaxUint64)),
		parse:  func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) },
		format: func(v uint64) string { return strconv.FormatUint(v, 10) },
	}
}

// decimal is a number from 0 to high.
func decimal(p *float64, high float64) value {
	format := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	return &number[float64]{
		p: p, high: high, kind: "float", scalars: []scalar{scalarNumber}, format: format,
		wants: wantsRange("a number", "0", strconv.FormatFloat(high, 'f', -1, 64)),
		parse: func(s string) (float64, error) { return strconv.ParseFloat(s, 64) },
	}
}

// speed is a number from low to high, or 0.
func speedOf(p *float64, low, high float64) value {
	n := decimal(p, high).(*number[float64])
	n.wants = fmt.Sprintf("give 0, or a number from %v to %.0f", low, high)
	n.parse = func(s string) (float64, error) {
		v, err := strconv.ParseFloat(s, 64)
		if v > 0 && v < low {
			err = strconv.ErrRange
		}
		return v, err
	}
	return n
}

// maxBoundDoc is the help of --max-bound.
var maxBoundDoc = fmt.Sprintf("largest bound on the leak of one window, as a `share` of the limit, with which a strategy still enforces it (default %.0f%%, or the record's)", 100*answer.MaxBound)

// percent is a share from above 0 to 1, given in percent; 0 if none is given.
func percent(p *float64) value {
	return &number[float64]{
		p: p, low: math.SmallestNonzeroFloat64, high: 1, kind: "percent", scalars: []scalar{scalarText}, wants: "give a share such as 10%, more than 0% and at most 100%",
		parse: func(s string) (float64, error) {
			digits, ok := strings.CutSuffix(s, "%")
			if !ok {
				return 0, strconv.ErrSyntax
			}
			v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
			return v / 100, err
		},
		format: func(v float64) string {
			if v == 0 {
				return "0"
			}
			return strconv.FormatFloat(100*v, 'g', 12, 64) + "%"
		},
	}
}

// span is a length of time that is not negative.
func span(p *time.Duration, high time.Duration) value {
	return &number[time.Duration]{
		p: p, high: high, kind: "duration", scalars: []scalar{scalarText, scalarNumber}, // a bare 0
		wants: fmt.Sprintf("give a time from 0 to %v with its unit, e.g. 400ms or 1m30s", high), parse: time.ParseDuration,
		format: func(d time.Duration) string {
			if d == 0 {
				return "0"
			}
			return d.String()
		},
	}
}

// text is anything but nothing, or one of the choices where there are some.
type text struct {
	p       *string
	choices []string
	what    string // to give; empty for any text
}

func (t *text) Set(s string) error {
	if len(t.choices) > 0 && !slices.Contains(t.choices, s) {
		return errors.New(hint(s, t.choices) + t.wanted())
	}
	if s == "" {
		return errEmpty
	}
	*t.p = s
	return nil
}

// errEmpty is the error of a value that is there and says nothing, as that of a
// variable of the shell that is not set.
var errEmpty = errors.New("it is empty: give a value, or leave it out")

func (t *text) String() string { return *t.p }
func (*text) Type() string     { return "string" }
func (*text) holds(s scalar) bool {
	return s == scalarText || s == scalarNumber // a cost of 5 is text that looks like a number
}

func (t *text) wanted() string {
	if len(t.choices) > 0 {
		return "give " + strings.Join(t.choices, " or ")
	}
	return "give " + cmp.Or(t.what, "text")
}

// list is a flag that may be repeated. The first value replaces the default.
type list struct {
	p   *[]string
	set bool
}

func (l *list) Set(s string) error {
	switch {
	case s == "":
		return errEmpty
	case l.set && len(*l.p) >= maxItems:
		return fmt.Errorf("it is given more than %d times: give fewer", maxItems)
	}
	if !l.set {
		*l.p, l.set = nil, true
	}
	*l.p = append(*l.p, s)
	return nil
}

// maxItems is how often a flag may be repeated, and how long a list in a file may be.
const maxItems = 1000

func (l *list) replace(items []string) { *l.p, l.set = items, true }

func (l *list) String() string    { return strings.Join(*l.p, ",") }
func (*list) Type() string        { return "string" }
func (*list) holds(s scalar) bool { return s == scalarText }
func (*list) wanted() string      { return "give text or a list of texts" }

// coresValue says which cores a measurement runs on.
type coresValue struct{ p *measure.Cores }

func (v *coresValue) Set(text string) error {
	c, err := measure.ParseCores(text)
	if err != nil {
		return err
	}
	*v.p = c
	return nil
}

func (v *coresValue) String() string    { return v.p.String() }
func (*coresValue) Type() string        { return "string" }
func (*coresValue) holds(s scalar) bool { return s == scalarText }
func (*coresValue) wanted() string      { return "give auto, shared, apart or harness=LIST,stores=LIST" }

// boolean is a flag without a value, and true or false in a file.
type boolean struct{ p *bool }

func (b *boolean) Set(s string) error {
	v, err := strconv.ParseBool(s)
	if err != nil {
		return errors.New(b.wanted())
	}
	*b.p = v
	return nil
}

func (b *boolean) String() string    { return strconv.FormatBool(*b.p) }
func (*boolean) Type() string        { return "bool" }
func (*boolean) holds(s scalar) bool { return s == scalarBool }
func (*boolean) wanted() string      { return "give true or false" }
