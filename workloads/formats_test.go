package workloads

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The files in testdata/logs have the shape that the documentation of each product shows, with invented clients. The
// expected figures were counted by a script of its own, with a regular expression or a column for each file.
var documented = []struct {
	file, fields string
	format       string
	dropped      int
	damaged      []int // lines
	cost         int64
	first, last  string
	requests     map[string]int
}{
	{
		file: "nginx.log", format: "access log (time=time,subject=client)", damaged: []int{18}, cost: 40,
		first: "2024-03-04T08:15:01Z", last: "2024-03-04T08:19:00Z",
		requests: map[string]int{"192.0.2.10": 14, "2001:db8::1f": 10, "198.51.100.7": 9, "203.0.113.200": 4, "192.0.2.77": 3},
	},
	{
		file: "apache-vhost.log", format: "access log with virtual hosts (time=time,subject=client)", cost: 45,
		first: "2024-03-04T22:58:21Z", last: "2024-03-04T23:03:56Z",
		requests: map[string]int{"203.0.113.9": 15, "192.0.2.14": 13, "198.51.100.23": 6, "2001:db8:0:1::2": 5,
			"crawler.example.net": 4, "192.0.2.15": 2},
	},
	{
		file: "caddy.jsonl", format: "JSON lines (time=ts,subject=request.client_ip)", dropped: 1, damaged: []int{1}, cost: 30,
		first: "2024-03-04T08:00:01.902336Z", last: "2024-03-04T08:03:55.351503Z",
		requests: map[string]int{"192.0.2.31": 16, "198.51.100.40": 9, "2001:db8::40": 4, "203.0.113.5": 1},
	},
	{
		file: "traefik.jsonl", format: "JSON lines (time=StartUTC,subject=ClientHost)", cost: 30,
		first: "2024-03-04T12:00:01.884753321Z", last: "2024-03-04T12:02:53.804941321Z",
		requests: map[string]int{"192.0.2.50": 21, "198.51.100.51": 6, "2001:db8::52": 3},
	},
	{
		file: "haproxy.log", format: "HAProxy log (time=time,subject=client)", cost: 35,
		first: "2024-02-06T12:14:20.826Z", last: "2024-02-06T12:17:56.106Z",
		requests: map[string]int{"198.51.100.61": 12, "192.0.2.60": 9, "203.0.113.62": 8, "2001:db8::63": 6},
	},
	{
		file: "envoy.log", format: "Envoy log (time=time,subject=x-forwarded-for)", cost: 32,
		first: "2024-04-15T20:17:11.036Z", last: "2024-04-15T20:21:48.577Z",
		requests: map[string]int{"192.0.2.70": 16, "198.51.100.71": 10, "2001:db8::72": 6},
	},
	{
		file: "alb.log", format: "AWS load balancer log (time=time,subject=client)", cost: 36,
		first: "2024-07-02T22:22:51.406203Z", last: "2024-07-02T22:27:33.583395Z",
		requests: map[string]int{"192.0.2.80": 21, "198.51.100.81": 8, "203.0.113.82": 6, "2001:db8::83": 1},
	},
	{
		file: "cloudfront.log", format: "CloudFront log (time=date+time,subject=c-ip)", cost: 33,
		first: "2024-12-04T21:02:32Z", last: "2024-12-04T21:05:05Z",
		requests: map[string]int{"192.0.2.100": 18, "2001:db8::102": 9, "198.51.100.101": 6},
	},
	{
		file: "app.jsonl", fields: "time=at,subject=caller.account,cost=usage.prompt_tokens+usage.completion_tokens",
		format: "JSON lines (time=at,subject=caller.account,cost=usage.prompt_tokens+usage.completion_tokens)", cost: 15_031,
		first: "2024-05-06T07:08:13.352Z", last: "2024-05-06T07:11:32.445Z",
		requests: map[string]int{"u-1001": 18, "u-1003": 5, "u-1002": 4, "u-1004": 1},
	},
	{
		file: "calls.csv", format: "CSV (time=timestamp,subject=user_id,cost=tokens)", cost: 30_744,
		first: "2024-05-06T07:08:14.93Z", last: "2024-05-06T07:11:25.573Z",
		requests: map[string]int{"user-7": 12, "user-8": 10, `user; with "marks"`: 5, "user-9": 3},
	},
}

func TestDocumentedFormats(t *testing.T) {
	for _, want := range documented {
		plain := filepath.Join("testdata", "logs", want.file)
		for _, path := range []string{plain, compressed(t, plain)} {
			given := quotaOptions(path, want.fields)
			s, info := build(t, "trace", Params{Policy: policy(t, "agent-tokens"), Options: given})
			count := map[string]int{}
			cost := int64(0)
			var op Op
			for i := range s.Len() {
				s.At(i, &op)
				count[s.Name(op.Subject)]++
				cost += op.Units
			}
			if !maps.Equal(count, want.requests) || cost != want.cost {
				t.Errorf("%s: cost %d of %v, want %d of %v", path, cost, count, want.cost, want.requests)
			}
			first := info.Trace.First.Format(time.RFC3339Nano)
			last := info.Trace.First.Add(info.Trace.Span).Format(time.RFC3339Nano)
			if first != want.first || last != want.last {
				t.Errorf("%s: from %s to %s, want %s to %s", path, first, last, want.first, want.last)
			}
			if info.Trace.Format != want.format || info.Trace.Dropped != want.dropped {
				t.Errorf("%s: %s, %d dropped; want %s, %d", path, info.Trace.Format, info.Trace.Dropped, want.format, want.dropped)
			}
			var damaged []int
			for _, row := range info.Trace.Damaged {
				damaged = append(damaged, row.Line)
			}
			if fmt.Sprint(damaged) != fmt.Sprint(want.damaged) || len(info.Warnings) > 0 {
				t.Errorf("%s: lines %v are damaged, want %v; warnings %q", path, damaged, want.damaged, info.Warnings)
			}
		}
	}
	if len(documented) != 10 {
		t.Errorf("%d formats", len(documented))
	}
}

func quotaOptions(path, fields string) map[string]string {
	return given("trace", path, "trace-fields", fields)
}

// compressed writes a copy of a file as logs are rotated.
func compressed(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), filepath.Base(path)) // the name says nothing
	if err := os.WriteFile(out, packed(t, string(text)), 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	if _, err := writer.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// What --trace-fields names wins in each shape, and a number counts from 1.
func TestTraceFields(t *testing.T) {
	const nginx = `192.0.2.1 - ann [04/Mar/2024:09:15:01 +0000] "GET / HTTP/1.1" 200 7 "-" "curl" "198.51.100.7, 192.0.2.9"`
	const istio = `[2024-03-04T09:15:01.5Z] "GET / HTTP/1.1" 418 - via_upstream - "-" 0 135 3 1 "-" "curl" "id" "web:80" ` +
		`"127.0.0.1:80" inbound|80|| 127.0.0.1:41854 10.44.1.27:80 203.0.113.5:37652 - default`
	for _, c := range []struct {
		name, text, fields string
		format, subject    string
		units              int64
	}{
		{"user", nginx, "subject=user", "access log (time=time,subject=user)", "ann", 1},
		{"number", nginx, "subject=10", "access log (time=time,subject=10)", "198.51.100.7", 1},
		{"number of a name", nginx, "subject=3", "access log (time=time,subject=user)", "ann", 1},
		{"cost", nginx, "cost=size", "access log (time=time,subject=client,cost=size)", "192.0.2.1", 7},
		{"two fields", nginx, "subject=client+user", "access log (time=time,subject=client+user)", "192.0.2.1 ann", 1},
		{"words", istio, "time=1,subject=20", "words (time=1,subject=20)", "203.0.113.5", 1},
		{"host", "shop:443 " + nginx, "subject=host", "access log with virtual hosts (time=time,subject=host)", "shop:443", 1},
		{"list in JSON", `{"time":"2024-03-04T09:15:01Z","h":{"X-Key":["k1","k2"]}}`, "subject=h.X-Key",
			"JSON lines (time=time,subject=h.X-Key)", "k1", 1},
		{"dot in a name", `{"time":1.5,"a.b":{"c.d":7}}`, "subject=a.b.c.d", "JSON lines (time=time,subject=a.b.c.d)", "7", 1},
		{"similar name", "When Done,USER-ID\n1,ann", "time=when_done", "CSV (time=When Done,subject=USER-ID)", "ann", 1},
		{"no header", "1709543701,ann,9\n1709543702,ann,9", "time=1,subject=2,cost=3", "CSV (time=1,subject=2,cost=3)", "ann", 9},
		{"tabs", "at\twho\n2024/03/04 09:15:01\tann", "time=at,subject=who", "CSV (time=at,subject=who)", "ann", 1},
		{"Azure with users", "TIMESTAMP,ContextTokens,GeneratedTokens,who\n2024-03-04 09:15:01,3,4,ann", "subject=who",
			"Azure LLM CSV (time=TIMESTAMP,subject=who,cost=ContextTokens+GeneratedTokens)", "ann", 7},
	} {
		given, err := parseTraceFields(c.fields)
		if err != nil {
			t.Fatal(err)
		}
		got, err := readText(c.text, given)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got.String() != c.format || got.names[0] != c.subject || len(got.names) != 1 || got.rows[0].units != c.units ||
			len(got.damaged) > 0 {
			t.Errorf("%s: %s, %q, %+v, damaged %v; want %s, %q, %d", c.name, got.dialect, got.names, got.rows, got.damaged,
				c.format, c.subject, c.units)
		}
	}
}

// What cannot be read says what to type.
func TestTraceFieldErrors(t *testing.T) {
	const who = "at,who,n\n2024-03-04 09:15:01,ann,3\n"
	for _, c := range []struct{ text, fields, want string }{
		{who, "", "CSV: no field is known as the time or the subject: say which is, with --trace-fields " +
			"time=FIELD,subject=FIELD, one of at, who, n"},
		{who, "time=at", "say which is, with --trace-fields subject=FIELD, one of at, who, n"},
		{who, "time=at,subject=whom", `CSV: --trace-fields subject=whom: unknown field "whom": did you mean who? It is one of ` +
			"at, who, n"},
		{who, "time=at,subject=who,cost=m", `--trace-fields cost=m: unknown field "m": one of at, who, n`},
		{who, "time=at,subject=4", `unknown field "4": one of at, who, n`},
		{"2024-03-04 09:15:01;ann\n2024-03-04 09:15:01;bob\n", "", "CSV: no field is known as the time or the subject: say which " +
			"is, with --trace-fields time=FIELD,subject=FIELD, one of 1, 2"},
		{`{"time":1,"caller":{"id":"ann"}}`, "", "JSON lines: no field is known as the subject: say which is, with " +
			"--trace-fields subject=FIELD, one of caller.id, time"},
		{`192.0.2.1 - - [04/Mar/2024:09:15:01 +0000] "GET / HTTP/1.1" 200 7`, "subject=agnet", "access log: --trace-fields " +
			`subject=agnet: unknown field "agnet": did you mean agent? It is one of client, ident, user, time`},
		{"ann 2024-03-04T09:15:01Z\n", "", "unknown format: none of Azure LLM CSV, CSV, JSON lines, CloudFront log, access log " +
			"with virtual hosts, access log, HAProxy log, Envoy log, AWS load balancer log; if it is a log of words, count " +
			"them from 1 and say which are needed, e.g. --trace-fields time=4,subject=1"},
		{"[\n{\"time\":1,\"user\":\"ann\"},\n", "", "unknown format: if it is JSON, write one object per line, as jq -c does"},
		{string(packed(t, who))[:20], "", "its compressed data is damaged (unexpected EOF): gzip -dc FILE > trace.log unpacks"},
	} {
		given, err := parseTraceFields(c.fields)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readText(c.text, given); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q, %s: %v\nwant %s", c.text, c.fields, err, c.want)
		}
	}
	for text, want := range map[string]string{
		"user_id":            `"user_id" is not of the form time=FIELD,subject=FIELD,cost=FIELD`,
		"tme=ts":             "is not of the form",
		"time=":              "is not of the form",
		"time=a,time=b":      "gives time twice",
		"subject=a,,cost=tk": "is not of the form",
	} {
		if _, err := parseTraceFields(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A log of one subject is doubtful from 100 requests on, unless the subject was chosen.
func TestOneSubject(t *testing.T) {
	row := `203.0.113.9 - - [04/Mar/2024:09:15:01 +0000] "GET / HTTP/1.1" 200 7 "-" "curl" "198.51.100.7"` + "\n"
	for _, c := range []struct {
		rows         int
		more, fields string
		want         string
	}{
		{3000, "", "", `access.log: 3,000 requests of 1 subject: if "203.0.113.9" is not the client, say which field is: ` +
			`--trace-fields subject=FIELD, one of client, ident, user, time, request, status, size, referrer, agent, 10`},
		{100, "", "", "access.log: 100 requests of 1 subject"},
		{99, "", "", ""},
		{100, strings.Replace(row, "203.0.113.9", "203.0.113.8", 1), "", ""},
		{100, "", "subject=10", ""},
	} {
		path := filepath.Join(t.TempDir(), "access.log")
		if err := os.WriteFile(path, []byte(strings.Repeat(row, c.rows)+c.more), 0o600); err != nil {
			t.Fatal(err)
		}
		_, info := build(t, "trace", Params{Policy: policy(t, "contact-form"), Options: quotaOptions(path, c.fields)})
		got := strings.Join(info.Warnings, "\n")
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%d rows, fields %q: %q, want %q", c.rows, c.fields, got, c.want)
		}
	}
	_, info := build(t, "trace", Params{Seed: 1, Policy: policy(t, "agent-tokens"),
		Options: given("trace", "testdata/anonymous.csv", "popularity", "single")})
	if len(info.Warnings) > 0 {
		t.Errorf("a trace without subjects: %q", info.Warnings)
	}
}

// Fields of a W3C log may change where it was rotated.
func TestExtendedHeaderChanges(t *testing.T) {
	got := read(t, "#Software: x\n#Fields: date time c-ip sc-status\n2024-12-04 21:02:31 192.0.2.1 200\n"+
		"#Fields: date time s-ip c-ip\n2024-12-04 21:02:32 198.51.100.1 192.0.2.2\n2024-12-04 21:02:33 198.51.100.1\n")
	if fmt.Sprint(got.names) != "[192.0.2.1 192.0.2.2]" || got.dropped != 1 || got.damaged[0].Line != 6 {
		t.Errorf("%q, %d dropped, %v", got.names, got.dropped, got.damaged)
	}
}

// The virtual host is a field more, whether it has a port or not; a user's name with a space is none.
func TestVirtualHosts(t *testing.T) {
	const rest = ` [04/Mar/2024:09:15:01 +0000] "GET / HTTP/1.1" 200 7`
	for text, want := range map[string]string{
		"www.example.com 192.0.2.1 - -":               "192.0.2.1",
		"www.example.com:8443 2001:db8::1 - ann":      "2001:db8::1",
		"192.0.2.1 - ann lee":                         "192.0.2.1",
		"192.0.2.1 - -":                               "192.0.2.1",
		"2001:db8::1 - -":                             "2001:db8::1",
		"192.0.2.1:5000 - -":                          "192.0.2.1",
		"[2001:db8::1]:5000 - -":                      "2001:db8::1",
		"192.0.2.1, 198.51.100.2 - -":                 "192.0.2.1",
		"www.example.com 192.0.2.1, 198.51.100.2 - -": "192.0.2.1",
	} {
		if got := read(t, text+rest); got.names[0] != want || len(got.damaged) > 0 {
			t.Errorf("%s: %q, %v, want %s", text, got.names, got.damaged, want)
		}
	}
}

func TestMoments(t *testing.T) {
	at := time.Date(2024, time.March, 4, 9, 15, 1, 250_000_000, time.UTC).UnixNano()
	for _, text := range []string{
		"1709543701.25", "1709543701250", "1709543701250000", "1709543701250000000", "1709543701250.0",
		"04/Mar/2024:10:15:01.25 +0100", "04/Mar/2024:09:15:01.250", "2024-03-04T09:15:01.25Z", "2024-03-04T10:15:01.25+01:00",
		"2024-03-04T10:15:01.25+0100", "2024-03-04T09:15:01.25", "2024-03-04 09:15:01.25", "2024-03-04 09:15:01,250",
		"2024-03-04 10:15:01.25+01:00", "2024-03-04 10:15:01.25 +0100", "2024-03-04 09:15:01.25 UTC", "2024/03/04 09:15:01.25",
	} {
		layout, fitting := likeliest([]string{text})
		got, err := layout.moment(text)
		if fitting != 1 || err != nil || got != at {
			t.Errorf("%s: %d by %q, %v; want %d", text, got, layout, err, at)
		}
	}
	if got, _ := epochTime("1709543701.2500000019"); got.UnixNano() != at+1 {
		t.Errorf("ten digits after the point: %d", got.UnixNano())
	}
	if layout, fitting := likeliest([]string{"x", "1", "2024-03-04T09:15:01Z", "2024-03-04T09:15:02Z"}); layout != time.RFC3339 ||
		fitting != 2 {
		t.Errorf("%q fits %d", layout, fitting)
	}
}
