package oracle

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
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
	sizeBytes  = 3       // of their number, at most
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
	const room = 1 + sizeBytes
	w.buf = fill(append(w.buf[:0], make([]byte, room)...))
	n := len(w.buf) - room
	if n > maxFrame {
		return fmt.Errorf("a frame of %d bytes, at most %d are allowed", n, maxFrame)
	}
	size := binary.AppendUvarint(nil, uint64(n))
	begin := sizeBytes - len(size)
	w.buf[begin] = kind
	copy(w.buf[begin+1:], size)
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
	for takes := range slices.Chunk(b.takes, lastChunk) {
		if err := w.part(to, &block{takes: takes}); err != nil {
			return err
		}
	}
	for gives := range slices.Chunk(b.gives, lastChunk) {
		if err := w.part(to, &block{gives: gives}); err != nil {
			return err
		}
	}
	w.takes += int64(len(b.takes))
	w.gives += int64(len(b.gives))
	return nil
}

// part writes one frame of events.
func (w *frameWriter) part(to io.Writer, b *block) error {
	x := extent{low: math.MaxUint32}
	for i := range b.takes {
		x.widen(b.takes[i].subject)
	}
	for i := range b.gives {
		x.widen(b.gives[i].Subject)
	}
	return w.frame(to, frameEvents, func(buf []byte) []byte {
		buf = x.append(buf)
		var c codec
		for i := range b.takes {
			event := b.takes[i].event()
			buf = c.append(buf, &event)
		}
		for i := range b.gives {
			buf = c.append(buf, &b.gives[i])
		}
		return buf
	})
}

// frameReader reads frames. Its buffer is used again for each.
type frameReader struct {
	reader *bufio.Reader
	at     int64 // offset of the next frame
	buf    []byte
	sum    uint32
}

// next returns io.EOF if the input ends between two frames.
func (r *frameReader) next() (kind byte, payload []byte, err error) {
	head, err := r.reader.Peek(1 + sizeBytes)
	if len(head) == 0 {
		return 0, nil, err
	}
	kind = head[0]
	size, n := binary.Uvarint(head[1:])
	switch {
	case n == 0 && err != nil:
		return 0, nil, cut(err)
	case n == 0 || size > maxFrame:
		return 0, nil, fmt.Errorf("a frame claims more than %d bytes", maxFrame)
	}
	_, _ = r.reader.Discard(1 + n) // it is there
	r.buf = slices.Grow(r.buf[:0], int(size)+4)[:size+4]
	if _, err := io.ReadFull(r.reader, r.buf); err != nil {
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
	r.at += int64(1 + n + len(r.buf))
	return kind, payload, nil
}

// cut names the end of the input where a frame should go on.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}
