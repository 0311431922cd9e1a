package format

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/quotabench/quotabench/quota"
)

// NS renders a duration in nanoseconds with three digits and the unit that
// fits, e.g. "41.2 µs".
func NS(ns float64) string {
	div, unit := TimeUnit(ns)
	return Digits(ns/div) + " " + unit
}

// TimeUnit returns the unit that suits a duration in nanoseconds, and its length.
func TimeUnit(ns float64) (div float64, unit string) {
	// A value that would be printed as 1,000 of a unit is 1 of the next.
	switch a := math.Abs(ns); {
	case a < 999.5:
		return 1, "ns"
	case a < 999.5e3:
		return 1e3, "µs"
	case a < 999.5e6:
		return 1e6, "ms"
	default:
		return 1e9, "s"
	}
}

// Digits renders value with three significant digits and no exponent; whole numbers
// keep all their digits.
func Digits(value float64) string {
	a := math.Abs(value)
	switch {
	case a >= 99.95:
		return Count(int64(math.Round(value)))
	case a >= 9.995:
		return strconv.FormatFloat(value, 'f', 1, 64)
	default:
		return strconv.FormatFloat(value, 'f', 2, 64)
	}
}

// Count renders a whole number with commas between thousands.
func Count(n int64) string {
	text := strconv.FormatUint(Magnitude(n), 10)
	var builder strings.Builder
	if n < 0 {
		builder.WriteByte('-')
	}
	for i, c := range []byte(text) {
		if i > 0 && (len(text)-i)%3 == 0 {
			builder.WriteByte(',')
		}
		builder.WriteByte(c)
	}
	return builder.String()
}

// Signed is formatCount with a plus sign before positive numbers.
func Signed(n int64) string {
	if n > 0 {
		return "+" + Count(n)
	}
	return Count(n)
}

// smallestPct is the smallest share that is printed as such.
const smallestPct = 1e-9

// Pct renders percent so that a small share is never rounded to 0 nor an
// incomplete one to 100.
func Pct(p float64) string { return PctNumber(p) + " %" }

// PctNumber is [Pct] without the sign.
func PctNumber(p float64) string {
	a := math.Abs(p)
	switch {
	case p == 0:
		return "0"
	case a < smallestPct:
		return "<" + strconv.FormatFloat(smallestPct, 'f', -1, 64)
	case a < 0.001:
		// One significant digit, without an exponent.
		return strconv.FormatFloat(p, 'f', int(math.Ceil(-math.Log10(a))), 64)
	case a < 0.1:
		return strconv.FormatFloat(p, 'f', 3, 64)
	case a < 9.995:
		return strconv.FormatFloat(p, 'f', 2, 64)
	case p > 99.95 && p < 100:
		return ">99.9"
	case a < 99.95:
		return strconv.FormatFloat(p, 'f', 1, 64)
	default:
		return Count(int64(math.Round(p)))
	}
}

// Range renders [certain, possible], or one number if they agree.
func Range(certain, possible int64) string {
	if possible <= certain {
		return Count(certain)
	}
	return Count(certain) + ".." + Count(possible)
}

// Per renders a count per decision.
func Per(value float64) string {
	if value == 0 {
		return "0"
	}
	if value >= 0.005 {
		return Digits(value)
	}
	return "<0.01"
}

// Plural renders a count and what is counted.
func Plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Units renders an amount of what a policy counts, whose name is a plural: "1
// e-mail", "50 requests", "1 MB".
func Units(n int64, name string) string { return Plural(n, quota.Singular(name), name) }

// Join leaves empty parts out.
func Join(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(text string) bool { return text == "" }), sep)
}

// List is what text says of each, parted by sep.
func List[T any](all []T, sep string, text func(T) string) string {
	parts := make([]string, len(all))
	for i, x := range all {
		parts[i] = text(x)
	}
	return strings.Join(parts, sep)
}

// Or lists alternatives, e.g. "a, b or c".
func Or(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Strings are words of a kind, such as faults, as plain texts.
func Strings[T ~string](words []T) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}

// OneLine makes a text of several lines, such as that of several errors, one: its lines
// are parted by semicolons.
func OneLine(text string) string {
	var line string
	for name := range strings.Lines(text) {
		name = strings.Join(strings.Fields(name), " ")
		switch {
		case name == "":
		case line == "":
			line = name
		case strings.ContainsAny(line[len(line)-1:], ",;:"):
			line += " " + name
		default:
			line += "; " + name
		}
	}
	return line
}

// Plain makes text from outside safe for a terminal: one line of some length, no
// control or formatting characters.
func Plain(text string) string {
	const most = 4000
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		default:
			return r
		}
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// Quoted puts a word in quotes if a shell would take it apart.
func Quoted(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n\"'`$&|;<>()[]{}?*!#~\\") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// TrimZeros drops the zeros that end a fraction.
func TrimZeros(text string) string {
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// Magnitude is |n|, also for the one number whose negative does not fit.
func Magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

// Number is a count of things, e.g. "1 request" or "2 requests".
func Number[N int | int64](n N, what string) string {
	return Plural(int64(n), what, what+"s")
}

// Wrapf says what failed with an error; nil stays nil.
func Wrapf(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// Cell is a text as a cell of a table that a spreadsheet may open: one that a
// spreadsheet would take for a formula begins with an apostrophe.
func Cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// Unreadable is the error of a file that cannot be read: its path, and why.
func Unreadable(path string, err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathError.Err
	}
	return fmt.Errorf("cannot read %s: %w", path, err)
}
