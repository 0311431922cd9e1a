package oracle

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

// Kinds of frames.
const (
	frameHeader  = 'H'
	frameInitial = 'I'
	frameNames   = 'N'
	frameEvents  = 'E'
	frameFooter  = 'Z'
)

const (
	maxFrame   = 1 << 20 // bytes of payload
	readBuffer = 1 << 18
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errCut      = errors.New("the file is cut off")
	errChecksum = errors.New("a checksum is wrong")
)

// frameWriter writes frames. Its buffer is used again for each.
type frameWriter struct {
	buf     []byte
	written int64  // bytes
	takes   int64  // events in frames
	gives   int64  // events in frames
	sum     uint32 // over the frames' checksums
}

// frame writes a payload that is made by appending to a buffer.
func (w *frameWriter) frame(to io.Writer, kind byte, fill func([]byte) []byte) error {
	const room = 1 + binary.MaxVarintLen32
	w.buf = fill(append(w.buf[:0], make([]byte, room)...))
	n := len(w.buf) - room
	if n > maxFrame {
		return fmt.Errorf("a frame of %d bytes, at most %d are allowed", n, maxFrame)
	}
	var size [binary.MaxVarintLen32]byte
	begin := room - binary.PutUvarint(size[:], uint64(n)) - 1
	w.buf[begin] = kind
	copy(w.buf[begin+1:], size[:room-1-begin])
	sum := crc32.Update(crc32.Checksum(w.buf[begin:begin+1], castagnoli), castagnoli, w.buf[room:])
	w.buf = binary.LittleEndian.AppendUint32(w.buf, sum)
	w.sum = crc32.Update(w.sum, castagnoli, w.buf[len(w.buf)-4:])
	n, err := to.Write(w.buf[begin:])
	if err != nil {
		return err
	}
	w.written += int64(n)
	return nil
}

// events writes a block in frames.
func (w *frameWriter) events(to io.Writer, b *block) error {
	for takes := b.takes; len(takes) > 0; {
		n := min(len(takes), lastChunk)
		err := w.frame(to, frameEvents, func(buf []byte) []byte {
			x := extent{low: math.MaxUint32}
			for i := range takes[:n] {
				x.widen(takes[i].subject)
			}
			buf = x.append(buf)
			var c codec
			for i := range takes[:n] {
				e := takes[i].event()
				buf = c.append(buf, &e)
			}
			return buf
		})
		if err != nil {
			return err
		}
		takes = takes[n:]
	}
	for gives := b.gives; len(gives) > 0; {
		n := min(len(gives), lastChunk)
		err := w.frame(to, frameEvents, func(buf []byte) []byte {
			x := extent{low: math.MaxUint32}
			for i := range gives[:n] {
				x.widen(gives[i].Subject)
			}
			buf = x.append(buf)
			var c codec
			for i := range gives[:n] {
				buf = c.append(buf, &gives[i])
			}
			return buf
		})
		if err != nil {
			return err
		}
		gives = gives[n:]
	}
	w.takes += int64(len(b.takes))
	w.gives += int64(len(b.gives))
	return nil
}

// frameReader reads frames. Its buffer is used again for each.
type frameReader struct {
	r   *bufio.Reader
	at  int64 // offset of the next frame
	buf []byte
	sum uint32
}

// next returns io.EOF where the input ends between two frames.
func (r *frameReader) next() (kind byte, payload []byte, err error) {
	if kind, err = r.r.ReadByte(); err != nil {
		return 0, nil, err
	}
	size, n := uint64(0), int64(1)
	for shift := 0; ; shift += 7 {
		b, err := r.r.ReadByte()
		if err != nil {
			return 0, nil, cut(err)
		}
		n++
		size |= uint64(b&0x7f) << shift
		if size > maxFrame || shift > 21 {
			return 0, nil, fmt.Errorf("a frame claims more than %d bytes", maxFrame)
		}
		if b < 0x80 {
			break
		}
	}
	if cap(r.buf) < int(size)+4 {
		r.buf = make([]byte, size+4)
	}
	r.buf = r.buf[:size+4]
	if _, err := io.ReadFull(r.r, r.buf); err != nil {
		return 0, nil, cut(err)
	}
	payload = r.buf[:size]
	sum := crc32.Update(crc32.Checksum([]byte{kind}, castagnoli), castagnoli, payload)
	if sum != binary.LittleEndian.Uint32(r.buf[size:]) {
		return 0, nil, errChecksum
	}
	if kind != frameFooter {
		r.sum = crc32.Update(r.sum, castagnoli, r.buf[size:])
	}
	r.at += n + int64(size) + 4
	return kind, payload, nil
}

// cut names the end of the input where a frame should go on.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}
