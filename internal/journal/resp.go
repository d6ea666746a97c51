package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Limits of a request; a client that passes one is disconnected.
const (
	maxWords = 1 << 20
	maxWord  = 64 << 20
	maxLine  = 64
)

var errProtocol = errors.New("protocol error")

// readCommand reads one request: an array of bulk strings (RESP). An empty array
// is skipped.
func readCommand(r *bufio.Reader) ([]string, error) {
	for {
		n, err := readLength(r, '*', maxWords)
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			continue
		}
		words := make([]string, 0, min(n, 64))
		for range n {
			w, err := readWord(r)
			if err != nil {
				return nil, err
			}
			words = append(words, w)
		}
		return words, nil
	}
}

func readWord(r *bufio.Reader) (string, error) {
	n, err := readLength(r, '$', maxWord)
	if err != nil {
		return "", err
	}
	if n < 0 {
		return "", fmt.Errorf("%w: a null word", errProtocol)
	}
	// Grown as it arrives: a length alone must not take memory.
	word := make([]byte, 0, min(n, 64<<10))
	for len(word) < n {
		step := min(n-len(word), 64<<10)
		at := len(word)
		word = append(word, make([]byte, step)...)
		if _, err := io.ReadFull(r, word[at:]); err != nil {
			return "", err
		}
	}
	var end [2]byte
	if _, err := io.ReadFull(r, end[:]); err != nil {
		return "", err
	}
	if end != [2]byte{'\r', '\n'} {
		return "", fmt.Errorf("%w: a word longer than its length", errProtocol)
	}
	return string(word), nil
}

func readLength(r *bufio.Reader, mark byte, limit int) (int, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return 0, fmt.Errorf("%w: line too long", errProtocol)
	}
	if err != nil {
		return 0, err
	}
	if len(line) < 4 || len(line) > maxLine || line[0] != mark || line[len(line)-2] != '\r' {
		return 0, fmt.Errorf("%w: expected '%c' and a length", errProtocol, mark)
	}
	n, err := strconv.Atoi(string(line[1 : len(line)-2]))
	if err != nil || n > limit {
		return 0, fmt.Errorf("%w: invalid length", errProtocol)
	}
	return n, nil
}
