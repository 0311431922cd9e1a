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

// Name is that of a script with that source. One whose file is not known is named by its first line.
func Name(source string) string {
	name, _ := names.LoadOrStore(digest(source), firstLine(source))
	return name.(string)
}

// NameOf is that of a script by its digest, as EVALSHA has it, or the beginning of the digest if it is not known.
func NameOf(digest string) string {
	if name, ok := names.Load(strings.ToLower(digest)); ok {
		return name.(string)
	}
	return digest[:min(len(digest), 8)]
}

// Argument names the script in the first argument of an EVAL or an EVALSHA, or of its form for reading.
func Argument(command, script string) string {
	if strings.HasPrefix(strings.ToLower(command), "evalsha") {
		return NameOf(script)
	}
	return Name(script)
}

func digest(source string) string {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // Redis names scripts so
	return hex.EncodeToString(sum[:])
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
