package codec

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/report/fixture"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// allocated is how many bytes f allocates, whether or not they are given back.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// bomb is a histogram of few bytes and a huge geometry.
func bomb(t *testing.T) string {
	t.Helper()
	head := bytes.NewBuffer(nil)
	for _, v := range []any{uint32(hdr.V2EncodingCookieBase) | 0x10, int32(0), int32(0), int32(5), int64(1),
		int64(1<<62 - 1), 1.0} {
		if err := binary.Write(head, binary.BigEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	if _, err := w.Write(head.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	out := binary.BigEndian.AppendUint32(nil, uint32(hdr.V2CompressedEncodingCookieBase)|0x10)
	out = binary.BigEndian.AppendUint32(out, uint32(z.Len()))
	return base64.StdEncoding.EncodeToString(append(out, z.Bytes()...))
}

// TestDecodeHostile holds files that are small and expensive to what their size
// may cost, and to an error.
func TestDecodeHostile(t *testing.T) {
	rich := fixture.Full(t)
	rich.Runs = rich.Runs[:1]
	good := string(fixture.Must[[]byte](t)(Encode(rich)))
	edit := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the encoded file has no %q", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	part := `{"outcome":"error","samples":0,"p50":0,"p90":0,"p99":0,"p999":0,"p9999":0,"max":0,"stalls_p99":0,"stalls_p999":0,"parts":[`
	for want, text := range map[string]string{
		// The schema's validator panics at the first, and takes 400 kB for the second.
		"number 1e-1000001 is out of range": edit(`"rate_per_s": 5000`, `"rate_per_s": 1e-1000001`),
		"number 0E-999999 is out of range":  edit(`"rate_per_s": 5000`, `"rate_per_s": 0E-999999`),
		"number 1e-9999999999999999999":     edit(`"rate_per_s": 5000`, `"rate_per_s": 1e-9999999999999999999`),
		"a number of 100002 characters":     edit(`"rate_per_s": 5000`, `"rate_per_s": 0.`+strings.Repeat("1", 100_000)),
		"nested more than 12 deep":          edit(`"stalls_p99": 38`, `"parts": [`+strings.Repeat(part, 2000)+strings.Repeat("]}", 2000)+`], "stalls_p99": 38`),
		"line 1: nested more than 12 deep":  `{"schema":4,"x":` + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + "}",
		`unknown field "parts"`:             edit(`"outcome": "admitted"`, `"parts": [`+part+"]}], "+`"outcome": "admitted"`),
		`"requests" occurs twice`:           edit(`"workers": 50`, `"workers": 50, "requests": -4`),
		"more than 50000 runs":              `{"schema":4,"runs":[` + strings.Repeat("{},", 60_000) + "{}]}",
		"or 1000000 objects":                `{"schema":4,"x":[[` + strings.Repeat("{},", 1_000_000) + "{}]]}",
		"it covers 1 to":                    edit(rich.Runs[0].Response.Histogram, bomb(t)),
	} {
		var err error
		cost := allocated(func() { _, err = Decode([]byte(text)) })
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") ||
			len(err.Error()) > 800 {
			t.Errorf("got %.200v, want one line about %s", err, want)
		}
		if most := uint64(8<<20 + 400*len(text)); cost > most {
			t.Errorf("%s: %d bytes make us allocate %d", want, len(text), cost)
		}
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestReadEndless(t *testing.T) {
	if _, err := readAll(endless{}, 1000); !errors.Is(err, errTooLarge) {
		t.Errorf("got %v", err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := readAll(endless{}, 16<<20); !errors.Is(err, errTooLarge) {
		t.Errorf("got %v", err)
	}
	runtime.ReadMemStats(&after)
	if after.TotalAlloc-before.TotalAlloc > 24<<20 {
		t.Errorf("%d MB were taken to refuse 16", (after.TotalAlloc-before.TotalAlloc)>>20)
	}
	if _, err := readAll(strings.NewReader("12345"), 4); !errors.Is(err, errTooLarge) {
		t.Errorf("one byte more: %v", err)
	}
	if b, err := readAll(strings.NewReader("1234"), 4); err != nil || len(b) != 4 {
		t.Errorf("got %q, %v", b, err)
	}
	if _, err := shaped(make([]byte, maxFile+1)); !errors.Is(err, errTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	if got := shortened(strings.Repeat("a", 5_000)); len(got) > 400 {
		t.Errorf("shortened to %d", len(got))
	}
	if got := fmt.Sprint(checkNumber("-1.5E+300"), checkNumber("1e400"), checkNumber("12")); got != "<nil> <nil> <nil>" {
		t.Errorf("ordinary numbers: %s", got)
	}
}
