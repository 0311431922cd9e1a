package oracle

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/quotabench/quotabench/quota"
)

// TestFrameBytes: a frame is those bytes that other programs read. The checksum is
// the one that CRC-32C is known to have for "123456789".
func TestFrameBytes(t *testing.T) {
	var b bytes.Buffer
	var w frameWriter
	if err := w.frame(&b, '1', func(b []byte) []byte { return append(b, "23456789"...) }); err != nil {
		t.Fatal(err)
	}
	want := unhex(t, "31 08 32 33 34 35 36 37 38 39 83 92 06 e3")
	if !bytes.Equal(b.Bytes(), want) || w.written != int64(len(want)) {
		t.Errorf("% x, %d bytes", b.Bytes(), w.written)
	}
}

// TestFrameSizes: frames of every length up to the largest are written and read
// again, and none beyond.
func TestFrameSizes(t *testing.T) {
	var b bytes.Buffer
	var w frameWriter
	var r frameReader
	sizes := []int{0, 1, 127, 128, 16_383, 16_384, maxFrame, 3}
	at := int64(0)
	for i, n := range sizes {
		if err := w.frame(&b, byte(i), func(b []byte) []byte { return append(b, make([]byte, n)...) }); err != nil {
			t.Fatal(err)
		}
		for at += int64(1 + n + 4); n >= 128; n /= 128 {
			at++
		}
		at++
		if w.written != at {
			t.Fatalf("%d bytes were written, should be %d", w.written, at)
		}
	}
	if err := w.frame(&b, 0, func(b []byte) []byte {
		return append(b, make([]byte, maxFrame+1)...)
	}); err == nil || err.Error() != "a frame of 1048577 bytes, at most 1048576 are allowed" {
		t.Errorf("a frame too large is written: %v", err)
	}
	if int64(b.Len()) != at {
		t.Errorf("%d bytes are there, should be %d", b.Len(), at)
	}
	r.reader = bufio.NewReader(&b)
	for i, n := range sizes {
		if kind, payload, err := r.next(); err != nil || kind != byte(i) || len(payload) != n {
			t.Fatalf("%d bytes: kind %d, %d bytes, %v", n, kind, len(payload), err)
		}
	}
	if r.at != at || r.sum != w.sum {
		t.Errorf("at %d of %d, sum %d of %d", r.at, at, r.sum, w.sum)
	}
	if _, _, err := r.next(); !errors.Is(err, io.EOF) {
		t.Errorf("behind the last frame: %v", err)
	}
}

// TestFramesThatCannotBeRead says for each what is wrong with it.
func TestFramesThatCannotBeRead(t *testing.T) {
	broken := errors.New("the disk is broken")
	whole := unhex(t, "31 08 32 33 34 35 36 37 38 39 83 92 06 e3")
	big := append([]byte("E\x81\x80\x40"), make([]byte, maxFrame+5)...)
	for _, c := range []struct {
		name string
		from io.Reader
		want string
	}{
		{"nothing", strings.NewReader(""), "EOF"},
		{"only a kind", bytes.NewReader(whole[:1]), errCut.Error()},
		{"half a size", strings.NewReader("E\x80"), errCut.Error()},
		{"half a size of two", strings.NewReader("E\x80\x80"), errCut.Error()},
		{"a size of too many bytes", strings.NewReader("E\x80\x80\x80\x00"), "a frame claims more than 1048576 bytes"},
		{"one byte too many", bytes.NewReader(big), "a frame claims more than 1048576 bytes"},
		{"no payload", bytes.NewReader(whole[:2]), errCut.Error()},
		{"half a payload", bytes.NewReader(whole[:6]), errCut.Error()},
		{"half a checksum", bytes.NewReader(whole[:13]), errCut.Error()},
		{"another kind", io.MultiReader(strings.NewReader("2"), bytes.NewReader(whole[1:])), errChecksum.Error()},
		{"a broken disk", iotest.ErrReader(broken), broken.Error()},
		{"a broken disk in a size", io.MultiReader(bytes.NewReader(whole[:1]), iotest.ErrReader(broken)), broken.Error()},
		{"a broken disk in a payload", io.MultiReader(bytes.NewReader(whole[:7]), iotest.ErrReader(broken)), broken.Error()},
	} {
		r := frameReader{reader: bufio.NewReader(c.from)}
		if _, _, err := r.next(); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, should be %s", c.name, err, c.want)
		}
	}
}

// failAfter takes so many writes.
type failAfter int

func (n *failAfter) Write(b []byte) (int, error) {
	if *n == 0 {
		return 0, errors.New("no space left")
	}
	*n--
	return len(b), nil
}

// TestWritesThatFail: an error of each frame's write is reported, and only events
// of blocks that were written whole are counted.
func TestWritesThatFail(t *testing.T) {
	b := block{takes: make([]compact, lastChunk+1), gives: make([]Event, 2*lastChunk+1)}
	for n := range 6 {
		to := failAfter(n)
		w := frameWriter{}
		err := w.events(&to, &b)
		if whole := n == 5; whole != (err == nil) || whole != (w.takes == lastChunk+1) ||
			whole != (w.gives == 2*lastChunk+1) || to != 0 {
			t.Errorf("%d frames: %v, %d and %d events", n, err, w.takes, w.gives)
		}
	}
}

// TestDamageIsLocated: a damaged frame is named by its first byte and by the events
// before it.
func TestDamageIsLocated(t *testing.T) {
	head, err := (&Header{}).encode()
	if err != nil {
		t.Fatal(err)
	}
	frames := []struct {
		kind    byte
		payload []byte
	}{
		{frameHeader, head},
		{frameNames, slices.Concat([]byte{1, 0xac, 0x02}, make([]byte, 300))}, // a size of two bytes
		{frameEvents, unhex(t, "00 00 70 00 00 71 00 00 00 00")},              // a take and a refund
		{frameEvents, unhex(t, "00 00 70 00 00")},
		{frameFooter, unhex(t, "02 01 00 00 00 00")},
	}
	const first = len("quotabench-history 1\n")
	events := []int{0, 0, 0, 2, 3}
	for damaged := range frames {
		b := []byte("quotabench-history 1\n")
		at := first
		var w frameWriter
		for i, f := range frames {
			var one bytes.Buffer
			if err := w.frame(&one, f.kind, func(b []byte) []byte { return append(b, f.payload...) }); err != nil {
				t.Fatal(err)
			}
			if i < damaged {
				at += one.Len()
			}
			if i == damaged {
				one.Bytes()[one.Len()-1] ^= 1
			}
			b = append(b, one.Bytes()...)
		}
		name := store(t, b)
		want := fmt.Sprintf("%s: damaged after %d events, at byte %d: a checksum is wrong", name, events[damaged], at)
		if _, err := OpenHistory(name); err == nil || err.Error() != want {
			t.Errorf("%v, should be %s", err, want)
		}
	}
}

// TestLimitsOfTables: names and subjects at their bounds are read, those beyond are
// not.
func TestLimitsOfTables(t *testing.T) {
	long := strings.Repeat("n", maxName)
	for _, c := range []struct {
		name    string
		kind    byte
		payload string
		want    map[uint32]string
	}{
		{"two names", frameNames, "\x01\x01a\x02\x00", map[uint32]string{1: "a", 3: ""}},
		{"the longest name", frameNames, "\x00\x80\x20" + long, map[uint32]string{0: long}},
		{"a longer name", frameNames, "\x00\x81\x20n" + long, nil},
		{"a name that is cut off", frameNames, "\x00\x02n", nil},
		{"a name without its length", frameNames, "\x01", nil},
		{"half a subject", frameNames, "\x80", nil},
		{"half a subject with a number", frameInitial, "\x80", nil},
		{"a subject of more than 64 bits", frameNames, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", nil},
		{"the same with a number", frameInitial, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", nil},
		{"the last subject", frameNames, "\xff\xff\xff\xff\x0f\x00", map[uint32]string{1<<32 - 1: ""}},
		{"one behind the last subject", frameNames, "\x80\x80\x80\x80\x10\x00", nil},
		{"up to the last subject", frameNames, "\x05\x00\xfa\xff\xff\xff\x0f\x00", map[uint32]string{5: "", 1<<32 - 1: ""}},
		{"beyond the last subject", frameNames, "\x05\x00\xfb\xff\xff\xff\x0f\x00", nil},
		{"two numbers", frameInitial, "\x01\x05\x02\x06", map[uint32]string{1: "-3", 3: "3"}},
		{"a subject without its number", frameInitial, "\x01\x05\x02", nil},
		{"half a number", frameInitial, "\x01\x85", nil},
	} {
		out := File{want: everySubject}
		err := out.frame(c.kind, []byte(c.payload), nil)
		if c.want == nil {
			if err == nil || err.Error() != "a table of subjects has no valid form" {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		got := map[uint32]string{}
		for s, n := range out.Header.Names {
			got[s] = n
		}
		for s, n := range out.Header.Initial {
			got[s] = fmt.Sprint(n)
		}
		if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, %v", c.name, err, got)
		}
	}
}

// TestFooters: numbers of events, each by itself, and the sum are checked against what
// was read.
func TestFooters(t *testing.T) {
	for _, c := range []struct {
		name, payload, want string
	}{
		{"right", "02 01 00 00 00 00", ""},
		{"a take too few", "03 01 00 00 00 00", "damaged: 3 events of 4"},
		{"a give-back too many", "02 00 00 00 00 00", "damaged: 3 events of 2"},
		{"one for the other", "01 02 00 00 00 00", "damaged: 3 events of 3"},
		{"another sum", "02 01 00 00 01 00", "damaged: the checksum over all frames is wrong"},
		{"empty", "", "damaged: the footer has no valid form"},
		{"one number", "02", "damaged: the footer has no valid form"},
		{"one number, and half of one", "02 81 80 80 80", "damaged: the footer has no valid form"},
		{"no sum", "02 01", "damaged: the footer has no valid form"},
		{"half a sum", "02 01 00 00 00", "damaged: the footer has no valid form"},
		{"more than a sum", "02 01 00 00 00 00 00", "damaged: the footer has no valid form"},
		{"too large a number", "ff ff ff ff ff ff ff ff ff ff 01 00 00 00 00 00", "damaged: the footer has no valid form"},
	} {
		f := File{Takes: 2, GiveBacks: 1}
		got := ""
		if err := f.footer(unhex(t, c.payload), &frameReader{reader: bufio.NewReader(strings.NewReader(""))}); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, should be %q", c.name, got, c.want)
		}
	}
}

// TestMostWindows: an operation may lie in so many windows and in no more.
func TestMostWindows(t *testing.T) {
	w := quota.Window{Kind: quota.Fixed, Length: 7}
	if err := judgeable(&w, 7*maxSpan+6); err != nil {
		t.Error(err)
	}
	if err := judgeable(&w, 7*maxSpan+7); err == nil ||
		err.Error() != "an operation lies in 1048577 windows, at most 1048576 are judged" {
		t.Errorf("one more: %v", err)
	}
	w.Kind = quota.Rolling
	if err := judgeable(&w, 1<<60); err != nil {
		t.Errorf("rolling: %v", err)
	}
}

// TestLongestOperation: only what is judged counts.
func TestLongestOperation(t *testing.T) {
	f := File{want: everySubject}
	var c codec
	b := everySubject.append(nil)
	for _, e := range []Event{{Call: 5, Reply: 9}, {Call: 6, Reply: 8}, {Call: 1, Reply: maxTime + 1}} {
		b = c.append(b, &e)
	}
	if err := f.frame(frameEvents, b, func(*Event) {}); err != nil || f.longest != 4 {
		t.Errorf("%d ns, %v", f.longest, err)
	}
}

// TestNegativeLimit: a header that no run can have had is refused instead of judged.
func TestNegativeLimit(t *testing.T) {
	h := NewHistory(HistoryOptions{Workers: 1})
	head := Header{Policy: quota.Policy{Limit: -1, Window: quota.Window{Kind: quota.Rolling, Length: 5}}}
	if err := WriteHistory(io.Discard, head, h); err == nil {
		t.Error("written")
	}
	if err := new(Header).decode([]byte(`{"policy":{"limit":-1,"window":"rolling","length_ns":5}}`)); err == nil || err.Error() != "the policy has a limit of -1" {
		t.Errorf("read: %v", err)
	}
	if err := new(Header).decode([]byte(`{"policy":{"limit":0,"window":"rolling","length_ns":5}}`)); err != nil {
		t.Errorf("a limit of 0: %v", err)
	}
}
