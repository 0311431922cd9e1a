package workloads

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

var may17 = time.Date(2015, time.May, 17, 10, 5, 3, 0, time.UTC).UnixNano()

// decoder reads rows as a file that begins with the text.
func decoder(t *testing.T, head string) func(text string) parsed {
	t.Helper()
	return read(t, head).decode
}

func TestDecodeAccessLog(t *testing.T) {
	const stamp = `[17/May/2015:10:05:03 +0000]`
	decode := decoder(t, `1.2.3.4 - - `+stamp+` "GET / HTTP/1.1" 200 12`)
	for _, c := range []struct {
		text string
		want parsed
	}{
		{`1.2.3.4 - - ` + stamp + ` "GET / HTTP/1.1" 200 12`, parsed{may17, "1.2.3.4", 1, "", false}},
		{`1.2.3.4 - - ` + stamp + ` "GET / HTTP/1.1" 200 12 "-" "curl"`, parsed{may17, "1.2.3.4", 1, "", false}},
		{`1.2.3.4 - - ` + stamp + ` "GET / HTTP/1.1" 200 12 "-" "curl" 17 "more"`, parsed{may17, "1.2.3.4", 1, "", false}},
		{`::1 - joe doe [17/May/2015:12:05:03 +0200] "-" 408 - "a\"b\\" "c"`, parsed{may17, "::1", 1, "", false}},
		{`h - - ` + stamp + ` "GET / HTTP/1.1" 200 12 "-" "curl`, parsed{may17, "h", 1, "unterminated agent", false}},
		{`h - - ` + stamp + ` "GET / HTTP/1.1" 200 12 "-" "curl\"`, parsed{may17, "h", 1, "unterminated agent", false}},
		{`h - - ` + stamp + ` "GET / HTTP/1.1" 200 12 "-"`, parsed{may17, "h", 1, "no agent", false}},
		{`h - - ` + stamp + ` "GET / HTTP/1.1" 200 12 "-`, parsed{may17, "h", 1, "unterminated referrer; no agent", false}},
		{`h - - ` + stamp + ` "GET / HTTP/1.1" 200 12 x`, parsed{may17, "h", 1, "no referrer", false}},
		{`h - - ` + stamp + ` "GET / HTTP/1.1" 200`, parsed{may17, "h", 1, "no size", false}},
		{`h - - ` + stamp + ` "GET / HTTP/1.1" 20x 5`, parsed{may17, "h", 1, "status is not a number", false}},
		{`h - - ` + stamp + ` "GET / HT`, parsed{may17, "h", 1, "unterminated request; no status", false}},
		{`h - - ` + stamp, parsed{may17, "h", 1, "no request", false}},
		{`h - - [17/May/2015:10:05:03 +0000`, parsed{may17, "h", 1, "unterminated time; no request", false}},
		{`h - - [17/May/2015:10:05:03`, parsed{damage: `time "17/May/2015:10:05:03" is not like 02/Jan/2006:15:04:05 -0700`, lost: true}},
		{`h - - [17/Mai/2015:10:05:03 +0000] "GET /" 200 5`, parsed{damage: `time "17/Mai/2015:10:05:03 +0000" is not like 02/Jan/2006:15:04:05 -0700`, lost: true}},
		{`h - - [17/May/0915:10:05:03 +0000] "GET /" 200 5`, parsed{damage: `time "17/May/0915:10:05:03 +0000" is out of range`, lost: true}},
		{`h`, parsed{damage: "no ident", lost: true}},
		{`h - -`, parsed{damage: "no time", lost: true}},
		{`- - - ` + stamp, parsed{damage: "no client", lost: true}},
	} {
		if got := decode(c.text); got != c.want {
			t.Errorf("%s\n got %+v\nwant %+v", c.text, got, c.want)
		}
	}
}

func TestDecodeAzure(t *testing.T) {
	decode := decoder(t, "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,3,4")
	at := time.Date(2023, time.November, 16, 18, 15, 46, 680_590_000, time.UTC).UnixNano()
	for _, c := range []struct {
		text string
		want parsed
	}{
		{"2023-11-16 18:15:46.6805900,374,44", parsed{at, "", 418, "", false}},
		{"2023-11-16 19:15:46.68059+01:00,374,44", parsed{at, "", 418, "", false}},
		{"2023-11-16 18:15:46.68059Z,0,44", parsed{at, "", 44, "", false}},
		{"2023-11-16 18:15:46.68059,374", parsed{at, "", 374, `2 fields instead of 3; GeneratedTokens "" is not a whole number from 0 to 1000000000000000`, false}},
		{"2023-11-16 18:15:46.68059,-1,4,", parsed{at, "", 4, `4 fields instead of 3; ContextTokens "-1" is not a whole number from 0 to 1000000000000000`, false}},
		{"2023-11-16 18:15:46.68059,1000000000000001,5", parsed{at, "", 5, `ContextTokens "1000000000000001" is not a whole number from 0 to 1000000000000000`, false}},
		{"2023-11-16 18:15:46.68059,0,0", parsed{at, "", 1, "no cost, counted as 1", false}},
		{"2023-11-16 18:15,3,4", parsed{damage: `time "2023-11-16 18:15" is not like 2006-01-02 15:04:05`, lost: true}},
		{"1823-11-16 18:15:46,3,4", parsed{damage: `time "1823-11-16 18:15:46" is out of range`, lost: true}},
	} {
		if got := decode(c.text); got != c.want {
			t.Errorf("%s\n got %+v\nwant %+v", c.text, got, c.want)
		}
	}
}

func TestDecodeCSV(t *testing.T) {
	decode := decoder(t, "time,subject,cost\n1,a,2")
	const second = int64(time.Second)
	for _, c := range []struct {
		text string
		want parsed
	}{
		{"1,a,2", parsed{second, "a", 2, "", false}},
		{"1.25,a,2", parsed{second * 5 / 4, "a", 2, "", false}},
		{"1970-01-01T00:00:01.25Z,a,2", parsed{second * 5 / 4, "a", 2, "", false}},
		{"1970-01-01T00:00:01.25,a,2", parsed{damage: `time "1970-01-01T00:00:01.25" is no number of seconds since 1970`, lost: true}},
		{`1,"a,b",2`, parsed{second, "a,b", 2, "", false}},
		{`1,a"b,2`, parsed{second, `a"b`, 2, "quotation marks do not match", false}},
		{"1,a", parsed{second, "a", 1, `2 fields instead of 3; cost "" is not a whole number from 0 to 1000000000000000; no cost, counted as 1`, false}},
		{"1,a,0", parsed{second, "a", 1, "no cost, counted as 1", false}},
		{"1,a,2,3", parsed{second, "a", 2, "4 fields instead of 3", false}},
		{"1,-,2", parsed{damage: "no subject", lost: true}},
		{",a,2", parsed{damage: "no time", lost: true}},
		{"1.,a,2", parsed{damage: `time "1." is no number of seconds since 1970`, lost: true}},
		{"1e9,a,2", parsed{damage: `time "1e9" is no number of seconds since 1970`, lost: true}},
		{"9223372036,a,2", parsed{damage: `time "9223372036" is out of range`, lost: true}},
		{"99999999999999999999,a,2", parsed{damage: `time "99999999999999999999" is no number of seconds since 1970`, lost: true}},
	} {
		if got := decode(c.text); got != c.want {
			t.Errorf("%s\n got %+v\nwant %+v", c.text, got, c.want)
		}
	}
}

func TestDecodeJSON(t *testing.T) {
	decode := decoder(t, `{"ts":1.5,"user":{"id":7},"client_ip":"192.0.2.1"}`)
	const at = int64(1_500_000_000)
	for _, c := range []struct {
		text string
		want parsed
	}{
		{`{"ts":"1.5","client_ip":"192.0.2.1:80"}`, parsed{at, "192.0.2.1", 1, "", false}},
		{`{"ts":1.5,"client_ip":["192.0.2.2","x"]}`, parsed{at, "192.0.2.2", 1, "", false}},
		{`{"ts":1.5,"client_ip":"a\u0062"}`, parsed{at, "ab", 1, "", false}},
		{`{"ts":1.5,"client_ip":null}`, parsed{damage: "no client_ip", lost: true}},
		{`{"ts":1.5,"client_ip":{"x":1}}`, parsed{damage: "no client_ip", lost: true}},
		{`{"ts":1.5,"client_ip":[[1]]}`, parsed{damage: "no client_ip", lost: true}},
		{`{"client_ip":"192.0.2.1"}`, parsed{damage: "no ts", lost: true}},
		{`{"ts":1.5,"client_ip":"192`, parsed{damage: "no JSON object: unexpected end of JSON input", lost: true}},
		{`null`, parsed{damage: "no ts", lost: true}},
	} {
		if got := decode(c.text); got != c.want {
			t.Errorf("%s\n got %+v\nwant %+v", c.text, got, c.want)
		}
	}
}

// FuzzReadTrace checks what holds for any file.
func FuzzReadTrace(f *testing.F) {
	f.Add("time,subject,cost\n1,a,2\r\n2,,3\nx")
	f.Add("\ufeffTIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44\r\n,,\n")
	f.Add("h - - [17/May/2015:10:05:03 +0000] \"GET /\" 200 5 \"-\" \"x\n\ny")
	f.Add("time,subject\n1.5,\"a,b\"\n1,\"\n")
	f.Add("#Fields: date time c-ip\n2024-12-04 21:02:31 a\n#Fields: c-ip\n#\nx")
	f.Add("{\"ts\":1,\"user\":{\"id\":[\"a\"]}}\n{\"ts\":1,\"user\":\"a\"}\n{}\nnull\n{")
	f.Add("<13>Feb  6 12:14:14 l haproxy[1]: a:1 [06/Feb/2009:12:14:14.655] f b/s 1/2 200 5 {x} \"GET /\n")
	f.Add("1;a\n2;b\n")
	f.Fuzz(func(t *testing.T, text string) {
		tr, err := readText(text, traceFields{})
		if err != nil {
			if err.Error() == "" || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q", err)
			}
			return
		}
		rows := 0
		number := 0
		for l := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
			number++
			if strings.TrimSpace(l) != "" && tr.shape.isRow(line{text: strings.TrimRight(l, "\r"), number: number}) {
				rows++
			}
		}
		if len(tr.rows)+tr.dropped != rows || len(tr.rows) == 0 {
			t.Errorf("%d used and %d dropped of %d rows", len(tr.rows), tr.dropped, rows)
		}
		before := 0
		unused := 0
		for _, d := range tr.damaged {
			if d.Line <= before || d.Reason == "" {
				t.Errorf("damaged row %+v after line %d", d, before)
			}
			before = d.Line
			if !d.Used {
				unused++
			}
		}
		if unused != tr.dropped {
			t.Errorf("%d rows dropped, %d named", tr.dropped, unused)
		}
		for _, r := range tr.rows {
			if r.units < 1 || r.units > 2*maxCost || r.at < 0 || !tr.anonymous && int(r.subject) >= len(tr.names) {
				t.Errorf("row %+v", r)
			}
		}
		names := slices.Sorted(slices.Values(tr.names))
		if len(slices.Compact(names)) != len(tr.names) || slices.ContainsFunc(tr.names, func(s string) bool {
			return unfit(s) != ""
		}) {
			t.Errorf("names %q", tr.names)
		}
	})
}

// plainName reports whether a subject can be written without quotation marks in
// every format.
func plainName(s string) bool {
	if _, err := netip.ParseAddrPort(s); err == nil { // the port is left out
		return false
	}
	return s != "" && s != "-" && len(s) <= maxSubject && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(r rune) bool {
			return unicode.IsControl(r) || unicode.IsSpace(r) || strings.ContainsRune(",\"[{#\ufeff", r)
		})
}

// FuzzRoundTrip writes a row in each format and reads it back.
func FuzzRoundTrip(f *testing.F) {
	f.Add(int64(1431857103), int64(680590000), "83.149.9.216", uint32(374), uint32(44), int8(2))
	f.Add(int64(0), int64(0), "é::1", uint32(0), uint32(1), int8(-11))
	f.Fuzz(func(t *testing.T, sec, nano int64, subject string, in, out uint32, hours int8) {
		sec = sec & (1<<33 - 1)
		nano = nano & (1<<29 - 1)
		if !plainName(subject) {
			return
		}
		if in|out == 0 {
			in = 1
		}
		at := time.Unix(sec, nano).In(time.FixedZone("", int(hours%14)*3600))
		cost := strconv.FormatUint(uint64(in)+uint64(out), 10)
		for _, c := range []struct {
			format, text string
			want         row
			anonymous    bool
		}{
			{"access log", fmt.Sprintf("%s - - [%s] \"GET /\" 200 %s", subject, at.Format("02/Jan/2006:15:04:05 -0700"), cost),
				row{sec * 1e9, 1, 0}, false},
			{"Azure LLM CSV", fmt.Sprintf("TIMESTAMP,ContextTokens,GeneratedTokens\n%s,%d,%d",
				at.UTC().Format("2006-01-02 15:04:05.999999999"), in, out), row{at.UnixNano(), int64(in) + int64(out), 0}, true},
			{"CSV", "time,subject,cost\n" + at.Format(time.RFC3339Nano) + "," + subject + "," +
				cost, row{at.UnixNano(), int64(in) + int64(out), 0}, false},
			{"CSV", fmt.Sprintf("time,subject,cost\n%d.%09d,%s,%s", sec, nano, subject, cost),
				row{at.UnixNano(), int64(in) + int64(out), 0}, false},
		} {
			tr, err := readText(c.text, traceFields{})
			if err != nil {
				t.Fatalf("%q: %v", c.text, err)
			}
			if tr.label != c.format || len(tr.damaged) > 0 || len(tr.rows) != 1 || tr.rows[0] != c.want {
				t.Errorf("%q: %s %+v %+v, want %s %+v", c.text, tr.label, tr.rows, tr.damaged, c.format, c.want)
			}
			if !c.anonymous && tr.names[0] != subject {
				t.Errorf("%q: subject %q", c.text, tr.names[0])
			}
		}
	})
}
