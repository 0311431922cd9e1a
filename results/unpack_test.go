package results

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// packed encodes counts of our geometry, whatever they are.
func packed(t *testing.T, announced int, counts []byte) string {
	t.Helper()
	var inner, out bytes.Buffer
	z := zlib.NewWriter(&inner)
	head := struct {
		Cookie, Length, Offset, Digits int32
		Lowest, Highest                int64
		Ratio                          float64
	}{hdr.V2EncodingCookieBase | 0x10, int32(announced), 0, digits, 1, bounds.MaxRecorded, 1}
	if err := binary.Write(z, binary.BigEndian, head); err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(counts); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := binary.Write(&out, binary.BigEndian,
		[]int32{hdr.V2CompressedEncodingCookieBase | 0x10, int32(inner.Len())}); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(append(out.Bytes(), inner.Bytes()...))
}

// number appends a count as the format has it.
func number(b []byte, x int64) []byte {
	v := uint64(x<<1) ^ uint64(x>>63)
	for n := 1; n < numberBytes && v >= 0x80; n++ {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// unpacksAlike requires that we read an encoding as the library does, or that both refuse it.
func unpacksAlike(t *testing.T, name, encoded string) (ok bool) {
	t.Helper()
	want, err := hdr.Decode([]byte(encoded))
	got := NewHistogram()
	n, ours := unpack(encoded, got)
	if (err == nil) != (ours == nil) {
		t.Errorf("%s: %v, and the library says %v", name, ours, err)
		return false
	}
	if err != nil {
		return false
	}
	if n != want.TotalCount() || !got.histogram.Equals(want) ||
		!slices.Equal(got.histogram.Export().Counts, want.Export().Counts) {
		t.Errorf("%s: %d values, and the library reads %d, or others", name, n, want.TotalCount())
	}
	if alone, err := unpack(encoded, nil); alone != n || err != nil {
		t.Errorf("%s: %d values, and %d where they are only counted, %v", name, n, alone, err)
	}
	return true
}

// TestUnpackAsTheLibrary reads histograms, damaged ones and invented counts.
func TestUnpackAsTheLibrary(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	for range testenv.Pick(8, 40) {
		h := NewHistogram()
		for range rng.IntN(3_000) {
			h.Record(int64(math.Exp(rng.Float64() * math.Log(float64(bounds.MaxRecorded)))))
		}
		l := must[Latency](t)(h.Latency())
		if !unpacksAlike(t, "a histogram", l.Histogram) {
			t.Error("it is refused")
		}
		damaged := []byte(l.Histogram)
		damaged[rng.IntN(len(damaged))] ^= byte(1 << rng.IntN(6))
		unpacksAlike(t, "damaged", string(damaged[:rng.IntN(len(damaged)+1)]))
		unpacksAlike(t, "damaged", string(damaged))
	}
	read := 0
	invented := testenv.Pick(300, 2_000)
	for range invented {
		var counts []byte
		for range rng.IntN(12) {
			x := []int64{0, 1, 5, -1, -3, -1000, -33_000, 1 << 40, math.MaxInt64, math.MinInt64, -math.MaxInt64}[rng.IntN(11)]
			counts = number(counts, x)
		}
		if rng.IntN(8) == 0 {
			counts = counts[:rng.IntN(len(counts)+1)]
		}
		announced := len(counts)
		if rng.IntN(8) == 0 {
			announced += rng.IntN(3) - 1
		}
		if unpacksAlike(t, "invented", packed(t, announced, counts)) {
			read++
		}
	}
	if read < invented/20 || read > invented-invented/20 {
		t.Errorf("%d of %d invented ones could be read", read, invented)
	}
	for _, x := range []int64{-mostCounts, -mostCounts + 1, -mostCounts - 1} {
		unpacksAlike(t, "at the end", packed(t, len(number(nil, x))+1, number(number(nil, x), 3)))
	}
	unpacksAlike(t, "all of it", packed(t, len(number(nil, -mostCounts)), number(nil, -mostCounts)))
	unpacksAlike(t, "too much", packed(t, mostCounts*numberBytes+1, make([]byte, mostCounts*numberBytes+1)))
	unpacksAlike(t, "negative", packed(t, -1, nil))
}

// TestUnpackAddsUp merges parts as histograms merge.
func TestUnpackAddsUp(t *testing.T) {
	want := NewHistogram()
	parts := []Part{{Outcome: "admitted", Histogram: NewHistogram()}, {Outcome: "rejected", Histogram: NewHistogram()}}
	for i := range int64(4_000) {
		parts[i%2].Histogram.RecordAtLeast(i * i * 977)
	}
	parts[1].Histogram.Record(2 * bounds.MaxRecorded)
	for _, p := range parts {
		want.Merge(p.Histogram)
	}
	l := must[Latency](t)(LatencyOf(parts))
	got := must[*Histogram](t)(l.Decode())
	if got.Distribution() != want.Distribution() {
		t.Errorf("%+v, want %+v", got.Distribution(), want.Distribution())
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	l.Parts[0].Samples++
	if err := l.Check(); err == nil {
		t.Error("a part that holds less than it says")
	}
}
