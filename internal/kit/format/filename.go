package format

import (
	"fmt"
	"strings"
	"unicode"
)

// FileName is a text as part of a file's name: what is neither a letter nor a digit, nor one of -_.=, becomes an
// underscore.
func FileName(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) && r != unicode.ReplacementChar || unicode.IsDigit(r) || strings.ContainsRune("-_.=", r) {
			return r
		}
		return '_'
	}, text)
}

// maxName is how many bytes a name has at most that others may be added to.
const maxName = 100

// CheckFileName refuses a name, from a file, that is to be a directory or a file within one: nothing is read or written
// elsewhere by it.
func CheckFileName(name string) error {
	if name == "" || name != FileName(name) || name[0] == '.' || len(name) > maxName {
		return fmt.Errorf("%.120q cannot be the name of a directory: write at most %d letters, digits, - and _", name,
			maxName)
	}
	return nil
}
