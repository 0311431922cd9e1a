package workloads

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Fingerprint identifies the first n operations of a stream, with their fates, the
// names of their subjects and what these have used at the start: streams with different
// fingerprints differ. A bounded stream may be shorter.
func Fingerprint(s Stream, n int64) string {
	if l := s.Len(); l > 0 {
		n = min(n, l)
	}
	h := sha256.New()
	var buf []byte
	var op Op
	for i := range n {
		s.At(i, &op)
		name := s.Name(op.Subject)
		buf = append(buf[:0], byte(op.Fate)<<4)
		for _, v := range [...]uint64{uint64(op.Units), uint64(op.At), uint64(Initial(s, op.Subject)), uint64(len(name))} {
			buf = binary.LittleEndian.AppendUint64(buf, v)
		}
		if op.Fate != FateNone { // prints of streams without fates predate them
			for _, v := range [...]uint64{uint64(op.Actual), uint64(op.Settle), uint64(op.Hold)} {
				buf = binary.LittleEndian.AppendUint64(buf, v)
			}
		}
		h.Write(append(buf, name...))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
