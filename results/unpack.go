package results

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/quotabench/quotabench/internal/kit/bounds"
)

// unpacker reads encoded histograms, one after the other, in the same memory. The
// library's decoder makes a histogram of 270 kB for each, of whatever geometry it finds
// there, and merging takes a step for every count it could hold: a record of a run has
// a thousand histograms of some hundred values.
type unpacker struct {
	packed []byte
	reader bytes.Reader
	closer io.ReadCloser
	head   [hdr.ENCODING_HEADER_SIZE]byte
	counts bytes.Buffer
}

var unpackers = sync.Pool{New: func() any { return new(unpacker) }}

// flag bits of the cookies that say nothing here.
const cookieFlags = 0xf0

// Values below smallValues have a count each; above, each factor of two has halfValues.
// mostCounts is how many counts our geometry has in all, each in numberBytes at most.
const (
	smallValues = 2 * halfValues
	halfValues  = 1 << 10
	mostCounts  = 33 * halfValues
	numberBytes = 9
)

// valueAt is the smallest value that an index counts.
func valueAt(index int) int64 {
	if index < smallValues {
		return int64(index)
	}
	bucket := index/halfValues - 1
	return int64(index%halfValues+halfValues) << bucket
}

// unpack adds an encoded histogram to another, unless that is nil, and returns how many
// values it holds. After an error the other holds a part.
func unpack(encoded string, histogram *Histogram) (total int64, err error) {
	if len(encoded) > maxEncoded {
		return 0, fmt.Errorf("histogram of %d bytes is too large to be one of ours", len(encoded))
	}
	u, _ := unpackers.Get().(*unpacker)
	defer unpackers.Put(u)
	if err := u.inflate(encoded); err != nil {
		return 0, fmt.Errorf("decode histogram: %w", err)
	}
	total, err = u.each(histogram)
	if err != nil {
		return 0, fmt.Errorf("decode histogram: %w", err)
	}
	return total, nil
}

// inflate leaves the counts of an encoded histogram in memory. No more is unpacked than
// our geometry can hold.
func (u *unpacker) inflate(encoded string) (err error) {
	u.packed, err = base64.StdEncoding.AppendDecode(u.packed[:0], []byte(encoded))
	if err != nil {
		return err
	}
	const prefix = 8 // cookie and length of what is compressed
	if len(u.packed) < prefix {
		return io.ErrUnexpectedEOF
	}
	big := binary.BigEndian
	rest := u.packed[prefix:]
	length := int64(int32(big.Uint32(u.packed[4:])))
	if int32(big.Uint32(u.packed))&^cookieFlags != hdr.V2CompressedEncodingCookieBase || length < 0 ||
		length > int64(len(rest)) {
		return errors.New("it does not begin as one")
	}
	u.reader.Reset(rest[:length])
	if u.closer == nil {
		u.closer, err = zlib.NewReader(&u.reader)
	} else {
		err = u.closer.(zlib.Resetter).Reset(&u.reader, nil)
	}
	if err != nil {
		u.closer = nil
		return err
	}
	if _, err := io.ReadFull(u.closer, u.head[:]); err != nil {
		return err
	}
	size := int64(int32(big.Uint32(u.head[4:])))
	figures := int32(big.Uint32(u.head[12:]))
	lowest := int64(big.Uint64(u.head[16:]))
	highest := int64(big.Uint64(u.head[24:]))
	switch {
	case int32(big.Uint32(u.head[:]))&^cookieFlags != hdr.V2EncodingCookieBase:
		return errors.New("it is of another version")
	case lowest != 1 || highest != bounds.MaxRecorded || figures != digits:
		return fmt.Errorf("it covers %d to %d ns in %d digits, not 1 to %d in %d", lowest, highest, figures,
			bounds.MaxRecorded, digits)
	case size < 0 || size > mostCounts*numberBytes:
		return fmt.Errorf("counts of %d bytes", size)
	}
	u.counts.Reset()
	// One byte more shows that more follows; the end of it, that the checksum is right.
	n, err := u.counts.ReadFrom(io.LimitReader(u.closer, size+1))
	if err == nil && n != size {
		err = fmt.Errorf("counts of %d bytes, and %d are announced", n, size)
	}
	return err
}

// each adds what was inflated. Counts ascend by value; a negative one stands for so many
// values that were not recorded.
func (u *unpacker) each(histogram *Histogram) (total int64, err error) {
	index := int64(0)
	for data := u.counts.Bytes(); len(data) > 0; {
		count, n := zigZag(data)
		if n == 0 {
			return 0, io.ErrUnexpectedEOF
		}
		data = data[n:]
		switch {
		case count == math.MinInt64 || count < 0 && -count > mostCounts-index || index >= mostCounts:
			return 0, fmt.Errorf("count %d at %d, and there are %d", count, index, mostCounts)
		case count < 0:
			index -= count
			continue
		case count > math.MaxInt64-total:
			return 0, errors.New("more values than can be counted")
		}
		total += count
		if histogram != nil && count > 0 {
			if err := histogram.histogram.RecordValues(valueAt(int(index)), count); err != nil {
				return 0, err
			}
		}
		index++
	}
	return total, nil
}

// zigZag reads a number of seven bits per byte, the ninth byte of eight; n is 0 if
// the text ends within it.
func zigZag(data []byte) (x int64, n int) {
	var v uint64
	for n < len(data) && n < numberBytes {
		c := uint64(data[n])
		shift := 7 * n
		n++
		if n < numberBytes {
			v |= c & 0x7f << shift
		} else {
			v |= c << shift
		}
		if n == numberBytes || c < 0x80 {
			return int64(v>>1) ^ -int64(v&1), n
		}
	}
	return 0, 0
}

// add adds a stored distribution to a histogram, unless that is nil. It returns false
// without an error if none was stored.
func (l *Distribution) add(histogram *Histogram) (stored bool, err error) {
	if l.Histogram == "" {
		return false, nil
	}
	n, err := unpack(l.Histogram, histogram)
	if err != nil {
		return false, err
	}
	n += l.OutOfRange
	if n != l.Samples {
		return false, fmt.Errorf("histogram holds %d values, the record says %d", n, l.Samples)
	}
	if histogram != nil {
		histogram.atLeast += l.AtLeast
		histogram.outOfRange += l.OutOfRange
	}
	return true, nil
}

// Decode unpacks the histogram of a stored distribution. It returns nil without an
// error if none was stored.
func (l *Distribution) Decode() (*Histogram, error) { return decoded(l.add) }

// decoded is what add fills.
func decoded(add func(*Histogram) (bool, error)) (*Histogram, error) {
	histogram := NewHistogram()
	if stored, err := add(histogram); err != nil || !stored {
		return nil, err
	}
	return histogram, nil
}

// add adds a stored latency, its parts if it has some.
func (l *Latency) add(histogram *Histogram) (stored bool, err error) {
	if len(l.Parts) == 0 {
		return l.Distribution.add(histogram)
	}
	if l.Histogram != "" {
		return false, errors.New("a latency with parts has a histogram of its own, which its parts already hold")
	}
	stored = true
	var samples, atLeast, outOfRange int64
	for i := range l.Parts {
		part := &l.Parts[i]
		has, err := part.add(histogram)
		if err != nil {
			return false, fmt.Errorf("part %d: %w", i, err)
		}
		stored = stored && has
		samples = samples + part.Samples
		atLeast = atLeast + part.AtLeast
		outOfRange = outOfRange + part.OutOfRange
	}
	if samples != l.Samples || atLeast != l.AtLeast || outOfRange != l.OutOfRange {
		return false, fmt.Errorf("the parts hold %d values (%d unfinished, %d out of range), the whole says %d (%d, %d)",
			samples, atLeast, outOfRange, l.Samples, l.AtLeast, l.OutOfRange)
	}
	return stored, nil
}

// Decode unpacks the histogram of a stored latency, of its parts if it has
// some. It returns nil without an error if none was stored. Counts that
// disagree with the histogram are an error.
func (l *Latency) Decode() (*Histogram, error) { return decoded(l.add) }

// Check reports the errors of [Latency.Decode], and makes no histogram.
func (l *Latency) Check() error {
	_, err := l.add(nil)
	return err
}
