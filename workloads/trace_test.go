package workloads

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/quotabench/quotabench/internal/kit/testenv"
)

func read(t testing.TB, text string) *trace {
	t.Helper()
	tr, err := readText(text, traceFields{})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func readText(text string, given traceFields) (*trace, error) {
	return readTrace(strings.NewReader(text), given, maxRows, maxSubjects)
}

func TestReplayOrder(t *testing.T) {
	s, info := build(t, "trace", Params{Policy: policy(t, "agent-payments")})
	want := []struct {
		name  string
		units int64
		at    time.Duration
	}{
		{"ada", 3, 0},
		{"ada", 2, 500 * time.Millisecond}, // before cleo's, as in the file
		{"cleo", 7, 500 * time.Millisecond},
		{"ben", 1, 750 * time.Millisecond},
		{"ben", 1, 1500 * time.Millisecond},
	}
	if s.Len() != int64(len(want)) || Subjects(s) != 3 {
		t.Fatalf("%d operations, %d subjects", s.Len(), Subjects(s))
	}
	for i, w := range want {
		var op Op
		s.At(int64(i), &op)
		if s.Name(op.Subject) != w.name || op.Units != w.units || op.At != w.at {
			t.Errorf("operation %d: %s %+v, want %+v", i, s.Name(op.Subject), op, w)
		}
	}
	got := fmt.Sprintf("%+v", *info.Trace)
	if got != `{File:tiny.csv Format:CSV (time=time,subject=subject,cost=cost) Rows:6 Used:5 Dropped:1 Damaged:[`+
		`{Line:6 Reason:cost "x" is not a whole number from 0 to 1000000000000000; no cost, counted as 1 Used:true} `+
		`{Line:7 Reason:time "never" is not like 2006-01-02T15:04:05Z07:00 Used:false}] First:2024-02-29 23:59:59.5 +0000 UTC Span:1.5s}` {
		t.Errorf("trace %s", got)
	}
}

func TestAzureTrace(t *testing.T) {
	p := Params{Seed: 1, Policy: policy(t, "agent-tokens"), Options: given("trace", traceFile(t, azureTrace))}
	s, info := build(t, "trace", p)
	if s.Len() != 19_366 || Subjects(s) != 100 || len(info.Trace.Damaged) != 0 || info.Trace.Rows != 19_366 {
		t.Errorf("%d operations, %d subjects, %+v", s.Len(), Subjects(s), info.Trace)
	}
	if len(info.Notes) != 2 || !strings.Contains(info.Notes[0], "assigned to 100 subjects") ||
		!strings.Contains(info.Notes[1], "tokens") {
		t.Errorf("notes %q", info.Notes)
	}
	var sum, largest int64
	hottest := 0
	var op Op
	for i := range s.Len() {
		s.At(i, &op)
		sum += op.Units
		largest = max(largest, op.Units)
		if op.Subject == 0 {
			hottest++
		}
	}
	if sum != 26_450_535 || largest != 14_089 { // by awk
		t.Errorf("%d tokens, at most %d", sum, largest)
	}
	closeTo(t, "the most popular subject", float64(hottest)/19_366, 1/5.18737752, 19_366)
	if got, want := Fingerprint(s, 20_000), "e5d6c6e260f70c34e6186ee4c7eb5897"; got != want {
		t.Errorf("fingerprint %s, want %s", got, want)
	}

	p.Policy = policy(t, "agent-api")
	p.Requests = 100
	p.Set("subjects", 7)
	p.Set("over-quota", 0.3)
	s, info = build(t, "trace", p)
	if s.Len() != 100 || Subjects(s) != 7 || info.Trace.Used != 19_366 {
		t.Errorf("%d operations, %d subjects, %+v", s.Len(), Subjects(s), info.Trace)
	}
	for i, want := range []string{"7 subjects", "tokens", "policy agent-api counts requests", "of the rows",
		"first 100 of 19366"} {
		if i >= len(info.Notes) || !strings.Contains(info.Notes[i], want) {
			t.Errorf("notes %q lack %q", info.Notes, want)
		}
	}
	full := 0
	for i := range uint32(7) {
		if Initial(s, i) == p.Policy.Limit {
			full++
		} else if Initial(s, i) != 0 {
			t.Errorf("subject %d starts with %d", i, Initial(s, i))
		}
	}
	if full == 0 || full == 7 || Initial(s, 0) != 0 {
		t.Errorf("%d subjects are full, the hottest with %d", full, Initial(s, 0))
	}
}

// TestTraceFill checks that shares go by rows of the file, not by the numbers of
// subjects.
func TestTraceFill(t *testing.T) {
	s, _ := build(t, "trace", Params{Policy: policy(t, "contact-form"),
		Options: given("trace", traceFile(t, apacheTrace), "over-quota", 0.2)})
	over := 0
	var op Op
	for i := range s.Len() {
		s.At(i, &op)
		if Initial(s, op.Subject) > 0 {
			over++
			if s.Name(op.Subject) == "66.249.73.135" {
				t.Fatal("the hottest address is full")
			}
		}
	}
	if over != 2_000 {
		t.Errorf("%d of 10000 checks are over quota, want 2000", over)
	}
}

func TestReadTraceErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "empty",
		"\n \r\n":                            "empty",
		"\x1f\x8b\x08\x00":                   "compressed data is damaged",
		"hello\nworld\n":                     "unknown format",
		"time,who\n1,2\n":                    "no field is known as the subject",
		"time,subject,cost\n":                "no rows after the header",
		"time,subject,cost\n1,,1\nx,a,1\n":   "none of its 2 rows can be used as CSV (time=time,subject=subject,cost=cost); line 2: no subject",
		"TIMESTAMP,ContextTokens\nx\n":       "no field is known as the subject",
		"time,subject\n-5,a\n99999999999,a":  "none of its 2 rows",
		"time,subject\n1,a\x00b\n1,\xff\xfe": "none of its 2 rows can be used as CSV (time=time,subject=subject); line 2: subject \"a\\x00b\" is not text",
	} {
		if _, err := readText(text, traceFields{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	for _, good := range []string{"", "time,subject\n" + strings.Repeat("1,a\n", 200)} {
		r := io.MultiReader(strings.NewReader(good), iotest.ErrReader(io.ErrUnexpectedEOF))
		if _, err := readTrace(r, traceFields{}, maxRows, maxSubjects); err == nil || !strings.Contains(err.Error(), io.ErrUnexpectedEOF.Error()) {
			t.Errorf("a failing disk: %v", err)
		}
	}
}

func TestLineEndings(t *testing.T) {
	const plain = "time,subject,cost\n1,a,2\n2,b,3"
	want := read(t, plain)
	for name, text := range map[string]string{
		"final newline":   plain + "\n",
		"crlf":            strings.ReplaceAll(plain, "\n", "\r\n"),
		"crlf at the end": strings.ReplaceAll(plain, "\n", "\r\n") + "\r\n",
		"byte order mark": "\ufeff" + plain,
		"blank lines":     "\n\n" + strings.ReplaceAll(plain, "\n", "\n \n") + "\n\n",
		"bom, then blank": "\ufeff\r\n" + plain,
		"names in quotes": "\"Time\",SUBJECT, cost \n1,\"a\",2\n2, b ,3",
		"order, extras":   "x,cost,subject,time\n,2,a,1.000\n,3,b,2",
	} {
		got := read(t, text)
		if fmt.Sprint(got.rows, got.names, got.damaged) != fmt.Sprint(want.rows, want.names, want.damaged) {
			t.Errorf("%s: %v %v %v", name, got.rows, got.names, got.damaged)
		}
	}
	if got := read(t, "\n\ntime,subject\n\n1,a\n\nx,b\n"); got.damaged[0].Line != 7 {
		t.Errorf("damaged rows %+v, want line 7", got.damaged)
	}
}

func TestHugeLines(t *testing.T) {
	huge := strings.Repeat("x", 3*maxLine)
	got := read(t, "time,subject,note\n1,a,"+huge+"\n2,"+huge+",\n3,b,\n")
	if len(got.rows) != 2 || got.names[0] != "a" || got.names[1] != "b" || got.dropped != 1 {
		t.Fatalf("%v %v, %d dropped", got.rows, got.names, got.dropped)
	}
	want := fmt.Sprintf("[{2 longer than %d bytes and cut off there true} {3 longer than %d bytes and cut off there; "+
		"subject of %d bytes is longer than %d false}]",
		maxLine, maxLine, maxLine-2, maxSubject)
	if fmt.Sprint(got.damaged) != want {
		t.Errorf("%v, want %v", got.damaged, want)
	}
	for _, end := range []string{"", "\n", "\r\n"} { // exactly as long as allowed
		exact := "1,a," + huge[:maxLine-len("1,a,")]
		if got := read(t, "time,subject,note\n"+exact+end+"2,b,"[:min(4, 4*len(end))]); len(got.damaged) != 0 {
			t.Errorf("end %q: %v", end, got.damaged)
		}
	}
}

// zeros never ends, as /dev/zero.
type zeros struct{ c byte }

func (z zeros) Read(p []byte) (int, error) {
	return copy(p, bytes.Repeat([]byte{z.c}, len(p))), nil
}

// What has no end, or is more than a run can have, is refused.
func TestTracesAreBounded(t *testing.T) {
	testenv.Sequential(t)
	for name, c := range map[string]struct {
		r    io.Reader
		want string
	}{
		"zeros":        {zeros{0}, "no text in UTF-8"},
		"UTF-16":       {strings.NewReader("t\x00i\x00m\x00e\x00,\x00s\x00"), "no text in UTF-8"},
		"one line":     {zeros{'x'}, "line 1 is longer than"},
		"rows":         {strings.NewReader("time,subject\n" + strings.Repeat("1,a\n", 300)), "more than 200 rows"},
		"damaged rows": {strings.NewReader("time,subject\n" + strings.Repeat("x,a\n", 300)), "more than 200 rows"},
		"many subjects": {strings.NewReader("time,subject\n" + strings.Repeat("1,a\n", 150) + "1,b\n1,c\n1,d\n"),
			"more than 3 subjects, which is the most that a run can have: cut it at line 153"},
	} {
		if _, err := readTrace(c.r, traceFields{}, 200, 3); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestCutAtBufferEnd has a line whose end alone is left for the last read.
func TestCutAtBufferEnd(t *testing.T) {
	const buffer = 1 << 16
	r := &lineReader{reader: bufio.NewReaderSize(strings.NewReader(strings.Repeat("x", maxLine+buffer)+"\ny\n"), buffer)}
	if !r.next() || !r.line.cut || len(r.line.text) != maxLine {
		t.Errorf("%d bytes, cut: %v", len(r.line.text), r.line.cut)
	}
	if !r.next() || r.line.cut || r.line.text != "y" || r.line.number != 2 {
		t.Errorf("then %.10q, cut: %v, line %d", r.line.text, r.line.cut, r.line.number)
	}
}

// TestFormatBehindDamage finds the format although the first rows are damaged.
func TestFormatBehindDamage(t *testing.T) {
	got := read(t, strings.Repeat("garbage\n", sniffed-1)+`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5`)
	if got.label != "access log" || len(got.rows) != 1 || len(got.damaged) != sniffed-1 {
		t.Errorf("%s: %d rows, %d damaged", got.label, len(got.rows), len(got.damaged))
	}
}
