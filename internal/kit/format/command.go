package format

import "github.com/quotabench/quotabench/internal/kit/redact"

// Command is how the program is called with arguments, as a shell would take it except for passwords.
func Command(args []string) string {
	words := append([]string{"quotabench"}, args...)
	return List(words, " ", func(word string) string { return Quoted(redact.All(word)) })
}
