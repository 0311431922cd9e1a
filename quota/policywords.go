package quota

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// The parts of a policy as people write it.
const (
	digitsPart  = `([0-9][0-9,_]*(?:\.[0-9]+)?)`
	numberPart  = digitsPart + `([kKM]?)`
	unitPart    = `([A-Za-z][A-Za-z-]*(?: [A-Za-z-]+){0,2}?)`
	perPart     = `(?:/|\b(?:per|every|each|an?|in|within)\b)`
	atOncePart  = ` (?:at once|concurrently|in flight)`
	subjectPart = `user|client|customer|account|tenant|session|ip|ip address|key|api key`
	kindPart    = `(fixed|rolling|sliding|first-request|calendar)`
	windowPart  = `(?:` + kindPart + `\s+)?([0-9]*)[\s-]*([A-Za-z]+)(?: window)?`
	amountPart  = `([0-9]+(?:\.[0-9]+)?)[\s-]*([A-Za-z]+)`
)

var (
	// ratePolicy is e.g. "1,000 API calls per rolling 15 minutes" or "10/s".
	ratePolicy = regexp.MustCompile(`^` + numberPart + `(?:\s*` + unitPart + `)?\s*` + perPart + `\s*` + windowPart + `$`)
	// shortPolicy is e.g. "100 rpm".
	shortPolicy = regexp.MustCompile(`(?i)^` + numberPart + `\s*(rps|rpm|rph|rpd|qps|qpm|tps|tpm)$`)
	// sizePolicy is e.g. "2 GB of storage".
	sizePolicy = regexp.MustCompile(`^` + digitsPart + `\s*([KMGT]i?B|[Bb]ytes|B)(?: (?:of )?[a-z]+)?$`)
	// atOncePolicy is e.g. "10 concurrent requests" or "10 requests at once".
	atOncePolicy = regexp.MustCompile(`^` + numberPart + ` (?:concurrent ` + unitPart + `|` + unitPart + atOncePart + `)$`)
	// burstEnd is the end of a policy, e.g. ", burst 20".
	burstEnd = regexp.MustCompile(`,? (?:with )?(?:a )?burst(?: of |[ =])` + numberPart + `$`)
	// zoneEnd is the end of a policy, e.g. "in Europe/Berlin".
	zoneEnd = regexp.MustCompile(` in ([A-Z][A-Za-z0-9_/+-]*)$`)
	// sumEnd is the end of a policy whose length has a fraction or several units, e.g. "per rolling 1h30m".
	sumEnd = regexp.MustCompile(`(` + perPart + `\s*(?:` + kindPart + `\s+)?)((?:` + amountPart + `(?:,?\s+)?)+)$`)
	// amount is one of the parts of such a length.
	amount = regexp.MustCompile(amountPart)
	// subjectEnd says for whom a policy is, which it is in any case for each subject.
	subjectEnd = regexp.MustCompile(`(?i) (?:per|for each) (?:` + subjectPart + `)$`)
	// moreEnd is the end that all policies may have, e.g. "costing 1 or 5 held 30m".
	moreEnd = regexp.MustCompile(` (?:costing|held) .*$`)
)

// rateUnits are what the letters of short policies count, and rateTimes their times.
var (
	rateUnits = map[string]string{
		"rps": "requests", "rpm": "requests", "rph": "requests", "rpd": "requests",
		"qps": "queries", "qpm": "queries", "tps": "transactions", "tpm": "tokens",
	}
	rateTimes = map[byte]string{'s': "second", 'm': "minute", 'h': "hour", 'd': "day"}
)

// timeUnits are the units of time that people write, as those of a length. A month has none.
var timeUnits = map[string]string{
	"s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
	"m": "m", "min": "m", "mins": "m", "minute": "m", "minutes": "m",
	"h": "h", "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
	"d": "d", "day": "d", "days": "d",
	"w": "w", "week": "w", "weeks": "w",
	"mo": "month", "month": "month", "months": "month",
}

// unitLengths are in seconds.
var unitLengths = map[string]int64{"s": 1, "m": 60, "h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}

// writtenPolicy is a policy of a rate in the words of whoever wrote it. All but the limit and
// the unit of time may be empty.
type writtenPolicy struct {
	limit, unit   string
	kind          string
	times, timeIn string // the length of the window, e.g. "15" and "minutes"
	burst, zone   string
}

// formalPolicy turns a policy as people write it into the form that [ParsePolicy] reads, e.g.
// "10/s burst 20" into "20 requests refilling 10 per 1s". A window of which nothing else is
// said is a fixed one. A month is that of the calendar, and so is what has a time zone. The
// error proposes the nearest text that is a policy, if there is one.
func formalPolicy(text string) (formal string, err error) {
	more := moreEnd.FindString(text)
	formal, err = formalRate(strings.TrimSuffix(text, more))
	return formal + more, err
}

// formalRate does so with a policy of which neither costs nor a hold are said.
func formalRate(text string) (formal string, err error) {
	rest := subjectEnd.ReplaceAllString(text, "")
	if size := sizePolicy.FindStringSubmatch(rest); size != nil {
		return sizeText(size[1], size[2])
	}
	if held := atOncePolicy.FindStringSubmatch(rest); held != nil {
		limit, err := wholeNumber("limit", held[1], held[2])
		return limit + " " + unitOf(held[3]+held[4]) + " at a time", err
	}
	var policy writtenPolicy
	if zone := zoneEnd.FindStringSubmatch(rest); zone != nil {
		policy.zone = zone[1]
		rest = strings.TrimSuffix(rest, zone[0])
	}
	if burst := burstEnd.FindStringSubmatch(rest); burst != nil {
		policy.burst, err = wholeNumber("burst", burst[1], burst[2])
		if err != nil {
			return "", err
		}
		rest = strings.TrimSuffix(rest, burst[0])
	}
	if short := shortPolicy.FindStringSubmatch(rest); short != nil {
		word := strings.ToLower(short[3])
		rest = short[1] + short[2] + " " + rateUnits[word] + " per " + rateTimes[word[len(word)-1]]
	}
	rate := ratePolicy.FindStringSubmatch(summed(rest))
	if rate == nil {
		return "", fmt.Errorf("give one such as %s", policyForms)
	}
	policy.limit, err = wholeNumber("limit", rate[1], rate[2])
	if err != nil {
		return "", err
	}
	policy.unit = unitOf(rate[3])
	policy.kind = rate[4]
	policy.times = rate[5]
	policy.timeIn = rate[6]
	return policy.formal()
}

// summed is a policy with one number of seconds for a length that has a fraction or several units. It changes no other.
func summed(text string) string {
	end := sumEnd.FindStringSubmatch(text)
	if end == nil {
		return text
	}
	written := end[len(end)-3]
	amounts := amount.FindAllStringSubmatch(written, -1)
	if len(amounts) == 1 && !strings.Contains(written, ".") {
		return text
	}
	sum := new(big.Rat)
	for _, part := range amounts {
		length := unitLengths[timeUnits[strings.ToLower(part[2])]]
		sum.Add(sum, new(big.Rat).Mul(decimal(part[1]), new(big.Rat).SetInt64(length)))
		if length == 0 {
			return text
		}
	}
	if !sum.IsInt() {
		return text
	}
	return strings.TrimSuffix(text, written) + sum.Num().String() + "s"
}

// unitOf is what a policy counts: requests, if nothing is said.
func unitOf(words string) string {
	switch words {
	case "", "r", "req", "reqs", "request":
		return "requests"
	}
	return strings.ReplaceAll(words, " ", "-")
}

// grouped are digits of which a point may stand between thousands.
var grouped = regexp.MustCompile(`^\d{1,3}(\.\d{3})+$`)

// wholeNumber reads e.g. "1,000", "10k" or "1.5M".
func wholeNumber(what, digits, suffix string) (string, error) {
	times := map[string]int64{"": 1, "k": 1000, "K": 1000, "M": 1_000_000}
	if suffix == "" && grouped.MatchString(digits) {
		plain := strings.ReplaceAll(digits, ".", "")
		return "", fmt.Errorf("the %s %s is a fraction in one country and %[3]s in another: write %[3]s", what, digits, plain)
	}
	n := decimal(digits)
	n.Mul(n, new(big.Rat).SetInt64(times[suffix]))
	if !n.IsInt() {
		return "", fmt.Errorf("the %s %s%s is no whole number", what, digits, suffix)
	}
	return n.Num().String(), nil
}

// decimal reads digits with commas or underscores between them, which the expressions above
// have found.
func decimal(digits string) *big.Rat {
	n, ok := new(big.Rat).SetString(strings.NewReplacer(",", "", "_", "").Replace(digits))
	if !ok {
		return new(big.Rat)
	}
	return n
}

// formal is the policy in the form that [ParsePolicy] reads.
func (p *writtenPolicy) formal() (string, error) {
	unit, known := timeUnits[strings.ToLower(p.timeIn)]
	if !known {
		if days := map[string]string{"fortnight": "14d", "quarter": "90d", "year": "365d"}[p.timeIn]; days != "" {
			return "", p.instead("no policy is written in units of a "+p.timeIn, p.kindOr("fixed")+" "+days)
		}
		return "", fmt.Errorf("%q is no unit of time: give s, m, h, d, week or month", p.timeIn)
	}
	if p.kind == "calendar" || p.zone != "" || unit == "month" {
		return p.ofCalendar(unit)
	}
	length, err := p.length(unit)
	if err != nil {
		return "", err
	}
	if p.burst == "" {
		return p.limit + " " + p.unit + " per " + p.kindOr("fixed") + " " + length, nil
	}
	bucket := p.burst + " " + p.unit + " refilling " + p.limit + " per " + length
	if p.kind != "" {
		return "", fmt.Errorf("a %s window has no burst: did you mean %q?", p.kindOr(""), bucket)
	}
	return bucket, nil
}

// ofCalendar is the policy if its window is one of the calendar.
func (p *writtenPolicy) ofCalendar(unit string) (string, error) {
	word := map[string]string{"h": "hour", "d": "day", "month": "month"}[unit]
	one := p.times == "" || p.times == "1"
	own := p.kind == "" || p.kind == "calendar"
	why := "windows of the calendar are one hour, day or month"
	if p.zone != "" {
		why = "only one hour, day or month of the calendar has a time zone"
	}
	switch {
	case word != "" && one && own && p.burst == "":
		text := p.limit + " " + p.unit + " per calendar " + word
		if p.zone != "" {
			text += " in " + p.zone
		}
		return text, nil
	case p.zone != "" && word != "" && one:
		return "", p.instead(why, "calendar "+word+" in "+p.zone)
	case unit == "month":
		months, err := strconv.ParseInt("0"+p.times, 10, 32)
		if err != nil {
			return "", fmt.Errorf("the length %s months is too large", p.times)
		}
		return "", p.instead(why, fmt.Sprintf("%s %dd", p.kindOr("fixed"), 30*max(1, months)))
	}
	length, err := p.length(unit)
	if err != nil {
		return "", err
	}
	return "", p.instead(why, "fixed "+length)
}

// instead is the error of a policy that is not possible, with the nearest that is.
func (p *writtenPolicy) instead(why, window string) error {
	return fmt.Errorf("%s: did you mean %q?", why, p.limit+" "+p.unit+" per "+window)
}

// kindOr is the kind of the window, or another if none was written.
func (p *writtenPolicy) kindOr(other string) string {
	switch p.kind {
	case "", "calendar":
		return other
	case "sliding":
		return "rolling"
	}
	return p.kind
}

// length is that of the window, e.g. "15m".
func (p *writtenPolicy) length(unit string) (string, error) {
	times := int64(1)
	if p.times != "" {
		n, err := strconv.ParseInt(p.times, 10, 32)
		if err != nil {
			return "", fmt.Errorf("the length %s%s is too large", p.times, unit)
		}
		times = n
	}
	if unit == "w" {
		return fmt.Sprintf("%dd", 7*times), nil
	}
	return fmt.Sprintf("%d%s", times, unit), nil
}

// sizeText is the policy of a size, in megabytes if it is a whole number of them.
func sizeText(digits, unit string) (string, error) {
	bytesOf := map[string]int64{
		"B": 1, "bytes": 1, "Bytes": 1,
		"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
		"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	}
	size := decimal(digits)
	size.Mul(size, new(big.Rat).SetInt64(bytesOf[unit]))
	megabytes := new(big.Rat).Quo(size, new(big.Rat).SetInt64(megabyte))
	switch {
	case megabytes.IsInt():
		return megabytes.Num().String() + " MB at a time", nil
	case size.IsInt():
		return size.Num().String() + " bytes at a time", nil
	}
	return "", fmt.Errorf("%s %s is no whole number of bytes", digits, unit)
}
