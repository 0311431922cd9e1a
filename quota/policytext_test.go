package quota

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParsePolicy(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	for text, want := range map[string]Policy{
		"20 links per calendar-month": {Limit: 20, Unit: "links", Window: Window{Kind: CalendarMonth},
			Name: "20-links-per-calendar-month"},
		" 20  links per calendar month ": {Limit: 20, Unit: "links", Window: Window{Kind: CalendarMonth},
			Name: "20-links-per-calendar-month"},
		"5 e-mails per calendar day in Europe/Berlin": {Limit: 5, Unit: "e-mails",
			Window: Window{Kind: CalendarDay, Location: berlin}, Name: "5-e-mails-per-calendar-day-in-Europe/Berlin"},
		"5 e-mails per calendar hour in UTC": {Limit: 5, Unit: "e-mails", Window: Window{Kind: CalendarHour},
			Name: "5-e-mails-per-calendar-hour"},
		"1000 requests per fixed 1h": {Limit: 1000, Unit: "requests",
			Window: Window{Kind: Fixed, Length: time.Hour}, Name: "1000-requests-per-fixed-1h"},
		"5 attempts per rolling 15m": {Limit: 5, Unit: "attempts",
			Window: Window{Kind: Rolling, Length: 15 * time.Minute}, Name: "5-attempts-per-rolling-15m"},
		"5-attempts-per-rolling-7d": {Limit: 5, Unit: "attempts",
			Window: Window{Kind: Rolling, Length: 168 * time.Hour}, Name: "5-attempts-per-rolling-168h"},
		"5 attempts per first-request 15m": {Limit: 5, Unit: "attempts",
			Window: Window{Kind: FirstRequest, Length: 15 * time.Minute}, Name: "5-attempts-per-first-request-15m"},
		"20 calls refilling 10 per 1s": {Limit: 20, Unit: "calls",
			Window: Window{Kind: Bucket, Length: time.Second, Refill: 10}, Name: "20-calls-refilling-10-per-1s"},
		"20-calls-refilling-10-per-1m-costing-1-or-5": {Limit: 20, Unit: "calls", Costs: []int64{1, 5},
			Window: Window{Kind: Bucket, Length: time.Minute, Refill: 10}, Name: "20-calls-refilling-10-per-1m-costing-1-or-5"},
		"100 sandboxes standing": {Limit: 100, Unit: "sandboxes", Name: "100-sandboxes-at-a-time"},
		"100 sandboxes at a time held 30m": {Limit: 100, Unit: "sandboxes", Hold: 30 * time.Minute,
			Name: "100-sandboxes-at-a-time-held-30m"},
		"90 tokens per fixed 1m30s costing 5 or 10": {Limit: 90, Unit: "tokens",
			Window: Window{Kind: Fixed, Length: 90 * time.Second}, Costs: []int64{5, 10},
			Name: "90-tokens-per-fixed-1m30s-costing-5-or-10"},
		"90-tokens-at-a-time-costing-5-or-10-held-10s": {Limit: 90, Unit: "tokens", Costs: []int64{5, 10},
			Hold: 10 * time.Second, Name: "90-tokens-at-a-time-costing-5-or-10-held-10s"},
	} {
		got, err := LookupPolicy(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
}

// TestParsePolicyAsPeopleWriteIt: each is read as the policy with that text.
func TestParsePolicyAsPeopleWriteIt(t *testing.T) {
	for text, want := range map[string]string{
		"1000/h":                                    "1000 requests per fixed 1h",
		"1000 / hour":                               "1000 requests per fixed 1h",
		"1000 per hour":                             "1000 requests per fixed 1h",
		"1,000 calls per hour":                      "1000 calls per fixed 1h",
		"1,000 API calls per hour":                  "1000 API-calls per fixed 1h",
		"1_000 calls/hr":                            "1000 calls per fixed 1h",
		"1k calls an hour":                          "1000 calls per fixed 1h",
		"5 per 15m":                                 "5 requests per fixed 15m",
		"5 per 1m5s":                                "5 requests per fixed 1m5s",
		"5 logins per rolling 1 hour 30 minutes":    "5 logins per rolling 1h30m",
		"10 per 1.5h":                               "10 requests per fixed 1h30m",
		"5 attempts per 15 minutes":                 "5 attempts per fixed 15m",
		"5 attempts every 15 min":                   "5 attempts per fixed 15m",
		"5 attempts in 15 minutes":                  "5 attempts per fixed 15m",
		"5 logins per rolling 15m":                  "5 logins per rolling 15m",
		"5 logins per rolling 15 minutes":           "5 logins per rolling 15m",
		"5 logins per sliding 15 minutes":           "5 logins per rolling 15m",
		"5 logins per rolling hour":                 "5 logins per rolling 1h",
		"10/s":                                      "10 requests per fixed 1s",
		"10/s burst 20":                             "20 requests refilling 10 per 1s",
		"10 req/s, burst 20":                        "20 requests refilling 10 per 1s",
		"10 requests per second with a burst of 20": "20 requests refilling 10 per 1s",
		"100r/m":                                    "100 requests per fixed 1m",
		"100 rpm":                                   "100 requests per fixed 1m",
		"50 rps":                                    "50 requests per fixed 1s",
		"90000 tpm":                                 "90000 tokens per fixed 1m",
		"20 links a month":                          "20 links per calendar month",
		"20 links per month":                        "20 links per calendar month",
		"3 e-mails per day":                         "3 e-mails per fixed 24h",
		"3 e-mails per calendar day":                "3 e-mails per calendar day",
		"3 e-mails per day in Europe/Berlin":        "3 e-mails per calendar day in Europe/Berlin",
		"500000 tokens per month in Europe/Berlin":  "500000 tokens per calendar month in Europe/Berlin",
		"1.5M tokens per day":                       "1500000 tokens per fixed 24h",
		"500k tokens/min":                           "500000 tokens per fixed 1m",
		"2 exports per week":                        "2 exports per fixed 168h",
		"100 downloads per 7d":                      "100 downloads per fixed 168h",
		"60/minute":                                 "60 requests per fixed 1m",
		"60 requests each minute":                   "60 requests per fixed 1m",
		"2GB":                                       "2000 MB at a time",
		"10 GB of storage":                          "10000 MB at a time",
		"500 MB":                                    "500 MB at a time",
		"1.5 GB":                                    "1500 MB at a time",
		"1GiB":                                      "1073741824 bytes at a time",
		"5 attempts per first-request 15m":          "5 attempts per first-request 15m",
		"20 links per month per user":               "20 links per calendar month",
		"5,000 requests per hour per API key":       "5000 requests per fixed 1h",
		"10 GB of storage per tenant":               "10000 MB at a time",
		"900 requests per 15-minute window":         "900 requests per fixed 15m",
		"100 requests per rolling 1 hour window":    "100 requests per rolling 1h",
		"3,500 RPM":                                 "3500 requests per fixed 1m",
		"10r/s burst=20":                            "20 requests refilling 10 per 1s",
		"10,000 RPS with a burst of 5,000":          "5000 requests refilling 10000 per 1s",
		"10 concurrent requests":                    "10 requests at a time",
		"3 jobs at once":                            "3 jobs at a time",
		"100 MB/day":                                "100 MB per fixed 24h",
		"1 per 10 minutes":                          "1 request per fixed 10m",
		"1000/h costing 1 or 5":                     "1000 requests per fixed 1h costing 1 or 5",
		"2 GB held 30m":                             "2000 MB at a time held 30m",
		"1 request per second":                      "1 request per fixed 1s",
	} {
		p, err := ParsePolicy(text)
		if err != nil || p.Text() != want {
			t.Errorf("%q is %q, %v; want %q", text, p.Text(), err, want)
		}
	}
}

// TestNearestPolicy: what is no policy is answered with the nearest that is, of the same limit and length.
func TestNearestPolicy(t *testing.T) {
	for text, want := range map[string]string{
		"10 per 3 months":                    "10 requests per fixed 90d",
		"5 logins per rolling month":         "5 logins per rolling 30d",
		"1000 per fortnight":                 "1000 requests per fixed 14d",
		"1000 per rolling quarter":           "1000 requests per rolling 90d",
		"10 per rolling 1h burst 20":         "20 requests refilling 10 per 1h",
		"5 per rolling day in Europe/Berlin": "5 requests per calendar day in Europe/Berlin",
		"5 per 2 weeks in Europe/Berlin":     "5 requests per fixed 14d",
		"5 per calendar week":                "5 requests per fixed 7d",
		"1000 calls per calendar 15 minutes": "1000 calls per fixed 15m",
	} {
		_, err := ParsePolicy(text)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("did you mean %q?", want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if policy, err := ParsePolicy(want); err != nil {
			t.Errorf("%q is proposed, and is %+v, %v", want, policy, err)
		}
	}
	for text, want := range map[string]string{
		"1.5 calls per hour":   "no whole number",
		"1.000 calls per hour": "the limit 1.000 is a fraction in one country and 1000 in another: write 1000",
		"10/s burst 0.5":       "the burst 0.5 is no whole number",
		"10/s burst":           "give one such as",
		"1/2/h":                "give one such as",
		"5 per hour in Berlin": `unknown time zone "Berlin": give a name such as Europe/Berlin`,
		"5 per bunch":          "is no unit of time: give s, m, h, d, week or month",
		"0.3B":                 "no whole number of bytes",
	} {
		_, err := ParsePolicy(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestAs: a policy of another kind is one that its text describes, of the same limit and rate.
func TestAs(t *testing.T) {
	for text, want := range map[string][]string{
		"50 requests per calendar hour": {
			"50 requests at a time", "50 requests per calendar month", "50 requests per calendar day",
			"50 requests per calendar hour",
			"50 requests per fixed 1h", "50 requests per rolling 1h", "50 requests refilling 50 per 1h",
			"50 requests per first-request 1h",
		},
		"20 calls refilling 10 per 1s costing 1 or 5": {
			"20 calls at a time costing 1 or 5", "20 calls per calendar month costing 1 or 5",
			"20 calls per calendar day costing 1 or 5",
			"20 calls per calendar hour costing 1 or 5", "20 calls per fixed 2s costing 1 or 5",
			"20 calls per rolling 2s costing 1 or 5",
			"20 calls refilling 10 per 1s costing 1 or 5", "20 calls per first-request 2s costing 1 or 5",
		},
		"5 boxes at a time held 1m": {
			"5 boxes at a time held 1m", "5 boxes per calendar month", "5 boxes per calendar day", "5 boxes per calendar hour",
			"5 boxes per fixed 1h", "5 boxes per rolling 1h", "5 boxes refilling 5 per 1h", "5 boxes per first-request 1h",
		},
	} {
		p, err := ParsePolicy(text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, kind := range Kinds() {
			q := p.As(kind)
			got = append(got, q.Text())
			if again, err := ParsePolicy(q.Text()); err != nil || !reflect.DeepEqual(q, again) || q.Window.Kind != kind {
				t.Errorf("%q as %v is %+v, and its text %+v, %v", text, kind, q, again, err)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestParsePolicyRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"20":                                                "give one such as",
		"20 links":                                          "give one such as",
		"20 links per rolling":                              "no unit of time",
		"20 links per calendar month, more":                 "give one such as",
		"0 links per calendar month":                        "limit is 0",
		"99999999999999999999 links at a time":              "the limit is above",
		"2000000000000000000 links at a time":               "the limit is 2000000000000000000",
		"20 links per rolling 15":                           `length "15"`,
		"20 links per rolling 0s":                           "not above 0",
		"20 links per fixed 99999999d":                      `length "99999999d"`,
		"20 links per fixed 1x":                             `length "1x"`,
		"20 links per calendar day in Nowhere":              `unknown time zone "Nowhere"`,
		"20 links per calendar day in Local":                `unknown time zone "Local"`,
		"20 links per calendar day held 1h":                 "are not held",
		"20 calls refilling 0 per 1s":                       "the refill of its bucket is 0",
		"20 calls refilling 10 per 0s":                      "not above 0",
		"20 calls refilling 9 per 1ns":                      "more than a unit in a nanosecond",
		"20 calls refilling 99999999999999999999 per 1s":    "the refill is above",
		"20 calls refilling 10":                             "give one such as",
		"20 links at a time costing 21":                     "a cost of 21",
		"20 links at a time costing 0 or 0":                 "a cost of 0 is not from 1 to the limit; a cost of 0",
		"20 links:x at a time":                              "not one word",
		"20 30 at a time":                                   "not one word",
		"20 links at a time costing 9999999999999999999999": "too large",
	} {
		_, err := LookupPolicy(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want one line with %q", text, err, want)
		}
	}
}

// TestPoliciesHaveTexts: the text of every known policy is read as the same
// policy, except for its name and what documents it.
func TestPoliciesHaveTexts(t *testing.T) {
	for _, p := range Policies() {
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		got, err := ParsePolicy(p.Text())
		got.Name = p.Name
		got.Doc = p.Doc
		got.Source = p.Source
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%s, %q: %+v, %v", p.Name, p.Text(), got, err)
		}
	}
}

// TestOneUnit: one unit has the singular, and both forms are read as the same policy.
func TestOneUnit(t *testing.T) {
	for unit, one := range map[string]string{"e-mails": "e-mail", "queries": "query", "keys": "key", "boxes": "box",
		"batches": "batch",
		"caches":  "cache", "MB": "MB", "ats": "ats"} {
		want := "1 " + one + " at a time"
		for _, text := range []string{"1 " + unit + " at a time", want} {
			if p, err := ParsePolicy(text); err != nil || p.String() != want || one != unit && p.Unit != unit {
				t.Errorf("%q is %q of the unit %q, %v; want %q", text, p, p.Unit, err, want)
			}
		}
		if p := (Policy{Limit: 2, Unit: unit, Window: Window{Kind: Standing}}); p.String() != "2 "+unit+" at a time" {
			t.Errorf("%q", p)
		}
	}
}

func FuzzParsePolicy(f *testing.F) {
	for _, p := range Policies() {
		f.Add(p.Text())
	}
	for _, s := range []string{"5-x-per-per-fixed-1h", "1 a at a time costing 1 or 1 held 1ns",
		"7 b per calendar-day in Etc/GMT-5", "3 x-at per rolling 1.5h", "20-calls-refilling-10-per-1s",
		"5 a per first-request 1m"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePolicy(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: an error of several lines: %v", text, err)
			}
			return
		}
		if err := p.Validate(); err != nil {
			t.Errorf("%q is read as %+v: %v", text, p, err)
		}
		for _, again := range []string{p.Text(), p.Name} {
			q, err := ParsePolicy(again)
			if err != nil || q.Text() != p.Text() || q.Name != p.Name || q.Limit != p.Limit || q.Unit != p.Unit ||
				q.Hold != p.Hold ||
				q.Window.Kind != p.Window.Kind || q.Window.Length != p.Window.Length || q.Window.Refill != p.Window.Refill ||
				!slices.Equal(q.Costs, p.Costs) {
				t.Errorf("%q is %+v; its form %q is %+v, %v", text, p, again, q, err)
			}
		}
	})
}

func TestRegisterPolicy(t *testing.T) {
	t.Cleanup(func() { registered.policies = nil })
	mine := Policy{Name: "mine", Limit: 3, Unit: "calls", Window: Window{Kind: Rolling, Length: time.Minute}}
	RegisterPolicy(mine)
	if got, err := LookupPolicy("mine"); err != nil || !reflect.DeepEqual(got, mine) {
		t.Errorf("looked up %+v, %v", got, err)
	}
	if all := Policies(); all[len(all)-1].Name != "mine" {
		t.Errorf("all policies: %v", all)
	}
	for what, c := range map[string]struct {
		policy Policy
		want   []string
	}{
		"twice":    {mine, []string{"mine is registered twice"}},
		"built in": {Policy{Name: "login", Limit: 1, Unit: "x"}, []string{"login is registered twice"}},
		"empty": {Policy{Window: Window{Kind: Fixed}, Hold: time.Hour},
			[]string{"name", "limit is 0", "unit", "length", "not held"}},
		"a text": {Policy{Name: "3x", Limit: 3, Unit: "x"}, []string{"begin with a digit"}},
	} {
		func() {
			defer func() {
				msg, _ := recover().(string)
				for _, want := range c.want {
					if !strings.Contains(msg, want) {
						t.Errorf("%s: panic %q, want %q", what, msg, want)
					}
				}
			}()
			RegisterPolicy(c.policy)
		}()
	}
	if _, err := LookupPolicy("logon"); err == nil || !strings.Contains(err.Error(), "did you mean login?") {
		t.Errorf("a name nearby: %v", err)
	}
}
