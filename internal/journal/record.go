package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"
)

// A record on disk, numbers little-endian:
//
//	length  uint32  of the body
//	check   uint32  CRC-32C of length and body
//	body    instant (int64, ns since 1970), sequence (uint64), then commands:
//	        the number of words and each word's length as uvarints, its bytes
const (
	headLen = 8
	bodyMin = 16
	bodyMax = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is one that was read.
type record struct {
	at       time.Time
	seq      uint64
	commands [][]string
}

// builder makes records in place, at the end of its buffer.
type builder struct {
	buf   []byte
	start int // where the open record begins
	bare  int // its length without a command
}

func (b *builder) open(at time.Time, seq uint64) {
	b.start = len(b.buf)
	b.buf = append(b.buf, make([]byte, headLen)...)
	b.buf = binary.LittleEndian.AppendUint64(b.buf, uint64(at.UnixNano()))
	b.buf = binary.LittleEndian.AppendUint64(b.buf, seq)
	b.bare = len(b.buf) - b.start
}

func (b *builder) add(words ...string) {
	b.buf = binary.AppendUvarint(b.buf, uint64(len(words)))
	for _, w := range words {
		b.buf = binary.AppendUvarint(b.buf, uint64(len(w)))
		b.buf = append(b.buf, w...)
	}
}

// drop forgets the open record.
func (b *builder) drop() { b.buf = b.buf[:b.start] }

// empty reports whether the open record holds no command.
func (b *builder) empty() bool { return len(b.buf) == b.start+b.bare }

func (b *builder) close() {
	r := b.buf[b.start:]
	binary.LittleEndian.PutUint32(r, uint32(len(r)-headLen))
	binary.LittleEndian.PutUint32(r[4:], check(r))
}

func check(r []byte) uint32 {
	return crc32.Update(crc32.Checksum(r[:4], castagnoli), castagnoli, r[headLen:])
}

// next reads the record at the start of data and returns what follows it. ok is
// false where no whole record that checks stands there.
func next(data []byte) (r record, rest []byte, ok bool) {
	if len(data) < headLen+bodyMin {
		return record{}, data, false
	}
	n := binary.LittleEndian.Uint32(data)
	if n < bodyMin || n > bodyMax || uint64(len(data)) < headLen+uint64(n) {
		return record{}, data, false
	}
	whole := data[:headLen+int(n)]
	if binary.LittleEndian.Uint32(whole[4:]) != check(whole) {
		return record{}, data, false
	}
	body := whole[headLen:]
	r.at = time.Unix(0, int64(binary.LittleEndian.Uint64(body))).UTC()
	r.seq = binary.LittleEndian.Uint64(body[8:])
	var err error
	if r.commands, err = commands(body[bodyMin:]); err != nil {
		return record{}, data, false
	}
	return r, data[len(whole):], true
}

func commands(body []byte) ([][]string, error) {
	var all [][]string
	for len(body) > 0 {
		n, rest, err := uvarint(body)
		if err != nil || n == 0 || n > uint64(len(rest)) {
			return nil, fmt.Errorf("%w: a command of %d words", ErrCorrupt, n)
		}
		words := make([]string, n)
		for i := range words {
			var l uint64
			if l, rest, err = uvarint(rest); err != nil || l > uint64(len(rest)) {
				return nil, fmt.Errorf("%w: a word of %d bytes", ErrCorrupt, l)
			}
			words[i], rest = string(rest[:l]), rest[l:]
		}
		all, body = append(all, words), rest
	}
	return all, nil
}

func uvarint(b []byte) (uint64, []byte, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, ErrCorrupt
	}
	return v, b[n:], nil
}
