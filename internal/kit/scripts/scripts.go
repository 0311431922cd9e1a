// Package scripts names Lua scripts for people: by their file, or by their first line.
package scripts

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts so
	"encoding/hex"
	"strconv"
	"strings"
	"sync"

	"github.com/quotabench/quotabench/internal/kit/format"
)

// mostName bounds a first line, in characters.
const mostName = 28

// names are the known ones, by digest.
var names sync.Map

// Learn gives the script with that source the name of its file.
func Learn(source, file string) { names.Store(digest(source), file) }

// Name is that of a script by its source, or by its digest as EVALSHA has it. One that is not known is named by its
// first line, or by the beginning of its digest.
func Name(script string) string {
	if isDigest(script) {
		if name, ok := names.Load(strings.ToLower(script)); ok {
			return name.(string)
		}
		return script[:8]
	}
	name, _ := names.LoadOrStore(digest(script), firstLine(script))
	return name.(string)
}

func digest(source string) string {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // Redis names scripts so
	return hex.EncodeToString(sum[:])
}

func isDigest(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && len(text) == 2*sha1.Size
}

// firstLine is the first line that is not empty, without the marks of a comment.
func firstLine(source string) string {
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "-"))
		if line != "" {
			return strconv.Quote(format.Shorten(line, mostName))
		}
	}
	return `""`
}
