// Package frames follows what clients write in messages whose headers tell how long they are.
package frames

// Parser is a parser of such messages, which counts them in a T.
type Parser[T any] struct {
	// Header is that of the message at hand, of a fixed length; Have says how many bytes of it are there.
	Header []byte
	Have   int
	// Rest is how many bytes follow a header. ok is false if it is none.
	Rest func(header []byte) (n int, ok bool)
	// Count counts a message that is complete.
	Count func(header []byte, out *T)

	left int // bytes of the rest still to come
}

// Parse reads the next piece of what the client writes.
func (r *Parser[T]) Parse(data []byte) (out T, ok bool) {
	for len(data) > 0 {
		if r.Have < len(r.Header) {
			n := copy(r.Header[r.Have:], data)
			r.Have = r.Have + n
			data = data[n:]
			if r.Have < len(r.Header) {
				break
			}
			r.left, ok = r.Rest(r.Header)
			if !ok {
				return out, false
			}
		}
		n := min(r.left, len(data))
		r.left = r.left - n
		data = data[n:]
		if r.left == 0 {
			r.Count(r.Header, &out)
			r.Have = 0
		}
	}
	return out, true
}
