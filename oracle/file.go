package oracle

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/quotabench/quotabench/quota"
)

const (
	// formatVersion is the version of the history format that is written,
	// changingVersion that of histories in which the limit changes.
	formatVersion   = 2
	changingVersion = 3
	magic           = "quotabench-history "
)

// formats are the versions that are read. Format 1 has no buckets, no windows that
// begin with their first request, and no requests that were granted in part.
// Only format 3 has limits that change: a reader of the others would pass over them.
var formats = []string{"1", "2", "3"}

// WriteHistory writes a history in the format that [OpenHistory] reads; see
// FORMAT.md. A history that lost events is refused.
func WriteHistory(to io.Writer, head Header, history *History) error {
	if n := history.Lost(); n > 0 {
		return fmt.Errorf("the history lost %d events, nothing can be judged by it", n)
	}
	payload, err := head.encode()
	if err != nil {
		return err
	}
	buf := bufio.NewWriterSize(to, readBuffer)
	var writer frameWriter
	if _, err := fmt.Fprintf(buf, "%s%d\n", magic, head.version()); err != nil {
		return err
	}
	if err := writer.frame(buf, frameHeader, func(data []byte) []byte { return append(data, payload...) }); err != nil {
		return err
	}
	if err := writer.initial(buf, head.Initial); err != nil {
		return err
	}
	if err := writer.names(buf, head.Names); err != nil {
		return err
	}
	if err := writer.history(buf, history); err != nil {
		return err
	}
	err = writer.frame(buf, frameFooter, func(data []byte) []byte {
		sum := writer.sum
		data = binary.AppendUvarint(data, uint64(writer.takes))
		data = binary.AppendUvarint(data, uint64(writer.gives))
		return binary.LittleEndian.AppendUint32(data, sum)
	})
	if err != nil {
		return err
	}
	return buf.Flush()
}

// history writes a history's events. Frames on disk are copied, after their checksums
// have been checked.
func (w *frameWriter) history(to io.Writer, history *History) error {
	history.seal()
	if spill := history.spill; spill != nil {
		err := spill.frames(func(payload []byte) error {
			return w.frame(to, frameEvents, func(data []byte) []byte { return append(data, payload...) })
		})
		if err != nil {
			return err
		}
		w.takes += spill.takes
		w.gives += spill.gives
	}
	for block := range history.memory() {
		if err := w.events(to, &block); err != nil {
			return err
		}
	}
	return nil
}

// initial writes the initial units: pairs of a subject, as the difference to the
// one before, and units.
func (w *frameWriter) initial(to io.Writer, units map[uint32]int64) error {
	return w.pairs(to, frameInitial, maps.Keys(units), func(data []byte, subject uint32) []byte {
		return binary.AppendVarint(data, units[subject])
	})
}

// names writes the subjects' names: as initial units, a length and bytes.
func (w *frameWriter) names(to io.Writer, names map[uint32]string) error {
	for subject, name := range names {
		if len(name) > maxName {
			return fmt.Errorf("the name of subject %d has %d bytes, at most %d are allowed", subject, len(name), maxName)
		}
	}
	return w.pairs(to, frameNames, maps.Keys(names), func(data []byte, subject uint32) []byte {
		name := names[subject]
		data = binary.AppendUvarint(data, uint64(len(name)))
		return append(data, name...)
	})
}

const (
	maxName  = 1 << 12 // bytes
	maxPairs = 200     // in a frame: 820 KiB of names
)

// pairs writes a table of subjects. add appends what belongs to one of them.
func (w *frameWriter) pairs(to io.Writer, kind byte, subjects iter.Seq[uint32], add func([]byte, uint32) []byte) error {
	for part := range slices.Chunk(slices.Sorted(subjects), maxPairs) {
		err := w.frame(to, kind, func(data []byte) []byte {
			last := uint32(0)
			for _, subject := range part {
				data = binary.AppendUvarint(data, uint64(subject-last))
				data = add(data, subject)
				last = subject
			}
			return data
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// File is a history file that has been read through once: it is whole.
type File struct {
	Header Header
	// Takes and GiveBacks are the numbers of events.
	Takes, GiveBacks int64

	name    string
	file    *os.File
	index   *index
	again   bool // only events of these subjects are wanted, all else was read
	want    extent
	longest int64 // nanoseconds of the longest operation
	// instances is how many there are at least, by their numbers.
	instances int
	parts     []part // of a union, which has no file of its own
}

// OpenHistory opens a history file and reads it through once. Each way of being
// damaged has an error of one line. The file must be closed.
func OpenHistory(name string) (*File, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	out := &File{name: name, file: file, index: &index{groups: groupEvents}, want: everySubject}
	out.index.each = out.each
	if err := out.read(file, out.index.add); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), file.Close())
	}
	out.index.close()
	return out, nil
}

// Close closes the file.
func (f *File) Close() (err error) {
	for _, part := range f.parts {
		err = errors.Join(err, part.Close())
	}
	if f.file != nil {
		err = f.file.Close()
	}
	return err
}

// Judge judges the history against the policy in its header, with one subject at
// a time in memory.
func (f *File) Judge() (Verdict, error) { return f.JudgeBy(f.Header.Config()) }

// JudgeBy judges the history against another configuration. Visitors see each
// subject's events in the same pass.
func (f *File) JudgeBy(cfg Config, visit ...Visitor) (Verdict, error) {
	if err := valid(&cfg.Window, cfg.Limit, cfg.Changes); err != nil {
		return Verdict{}, err
	}
	if err := judgeable(&cfg.Window, f.longest); err != nil {
		return Verdict{}, fmt.Errorf("%s: %w", f.name, err)
	}
	return f.index.judge(cfg, subjectLimit, visit)
}

// judgeable refuses windows that are too many for the longest operation, of that
// many nanoseconds.
func judgeable(window *quota.Window, longest int64) error {
	if window.Kind != quota.Fixed {
		return nil
	}
	if n := longest / int64(window.RealLength()); n > maxSpan {
		return fmt.Errorf("an operation lies in %d windows, at most %d are judged", n, maxSpan)
	}
	return nil
}

// maxSpan is the number of windows that one operation may lie in.
const maxSpan = 1 << 20

// Subjects yields the events of one subject after the other, by number, each
// ordered by call. The slice is used again for the next one. An error ends it.
func (f *File) Subjects() iter.Seq2[[]Event, error] {
	return func(yield func([]Event, error) bool) { f.index.subjects(subjectLimit, yield) }
}

func (f *File) each(want extent, visit func(*Event) error) error {
	for i := range f.parts {
		if err := f.parts[i].each(want, visit); err != nil {
			return err
		}
	}
	if f.file == nil {
		return nil
	}
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var failed error
	again := File{name: f.name, again: true, want: want}
	err := again.read(f.file, func(event *Event) {
		if failed == nil {
			failed = visit(event)
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return failed
}

// read reads the whole file.
func (f *File) read(from io.Reader, visit func(*Event)) error {
	reader := frameReader{reader: bufio.NewReaderSize(from, readBuffer)}
	line, err := reader.reader.ReadSlice('\n')
	label, is := bytes.CutPrefix(line, []byte(magic))
	version := strings.TrimSpace(string(label))
	switch {
	case !is:
		return errors.New("not a history file")
	case err != nil:
		return errCut
	case !slices.Contains(formats, version):
		return fmt.Errorf("a history of format %.20q, this program reads formats %s", version, strings.Join(formats, ", "))
	}
	reader.at = int64(len(line))
	for first := true; ; first = false {
		at := reader.at
		kind, payload, err := reader.next()
		if errors.Is(err, io.EOF) {
			err = errCut
		}
		if err == nil && first != (kind == frameHeader) {
			err = errors.New("the header is missing or comes twice")
		}
		if err == nil {
			err = f.frame(kind, payload, visit)
		}
		if need := f.Header.version(); err == nil && first && need > formatVersion && version < strconv.Itoa(need) {
			err = fmt.Errorf("a header of format %s with limits that change", version)
		}
		if err == nil && kind == frameFooter {
			return f.footer(payload, &reader)
		}
		if err != nil {
			return fmt.Errorf("damaged after %d events, at byte %d: %w", f.Takes+f.GiveBacks, at, err)
		}
	}
}

func (f *File) frame(kind byte, payload []byte, visit func(*Event)) error {
	switch kind {
	case frameHeader:
		return f.Header.decode(payload)
	case frameInitial:
		if f.again {
			return nil
		}
		return f.initial(payload)
	case frameNames:
		if f.again {
			return nil
		}
		return f.names(payload)
	case frameEvents:
		return decodeEvents(payload, f.want, func(event *Event) error {
			if event.Kind == Take {
				f.Takes++
			} else {
				f.GiveBacks++
			}
			if event.wellFormed() {
				f.longest = max(f.longest, event.Reply-event.Call)
				f.instances = max(f.instances, int(event.Instance)+1)
			}
			visit(event)
			return nil
		})
	case frameFooter:
		return nil
	default:
		return fmt.Errorf("a frame of unknown kind %q", kind)
	}
}

func (f *File) initial(data []byte) error {
	if f.Header.Initial == nil {
		f.Header.Initial = map[uint32]int64{}
	}
	return pairs(data, func(subject uint32, data []byte) (size int, valid bool) {
		units, size := binary.Varint(data)
		f.Header.Initial[subject] = units
		return size, size > 0
	})
}

func (f *File) names(data []byte) error {
	if f.Header.Names == nil {
		f.Header.Names = map[uint32]string{}
	}
	return pairs(data, func(subject uint32, data []byte) (size int, valid bool) {
		length, size := binary.Uvarint(data)
		if size <= 0 || length > maxName || int(length) > len(data[size:]) {
			return 0, false
		}
		end := size + int(length)
		f.Header.Names[subject] = string(data[size:end])
		return end, true
	})
}

// pairs reads a table of subjects. read is given the data behind each subject, and
// returns the size of what belongs to it.
func pairs(data []byte, read func(subject uint32, data []byte) (size int, valid bool)) error {
	last := uint32(0)
	for len(data) > 0 {
		distance, distanceSize := binary.Uvarint(data)
		data = data[max(distanceSize, 0):] // read finds no number there if there is none
		size, valid := read(last+uint32(distance), data)
		if !valid || distance > uint64(math.MaxUint32-last) {
			return errors.New("a table of subjects has no valid form")
		}
		last += uint32(distance)
		data = data[size:]
	}
	return nil
}

// footer checks the events read against the numbers and the checksum of the writer.
func (f *File) footer(data []byte, reader *frameReader) error {
	takes, takesSize := binary.Uvarint(data)
	gives, givesSize := binary.Uvarint(data[max(takesSize, 0):])
	numbers := takesSize + givesSize
	if givesSize <= 0 || len(data) != numbers+4 {
		return errors.New("damaged: the footer has no valid form")
	}
	if f.again {
		return nil
	}
	if int64(takes) != f.Takes || int64(gives) != f.GiveBacks {
		return fmt.Errorf("damaged: %d events of %d", f.Takes+f.GiveBacks, takes+gives)
	}
	if binary.LittleEndian.Uint32(data[numbers:]) != reader.sum {
		return errors.New("damaged: the checksum over all frames is wrong")
	}
	if _, err := reader.reader.ReadByte(); err != io.EOF {
		return errors.New("damaged: something follows the footer")
	}
	return nil
}
