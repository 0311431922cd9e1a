package settings

import (
	"cmp"
	_ "embed"
	"strings"
	"sync"
)

//go:embed flags.txt
var flagTexts string

// texts are what flags.txt says, by "command name"; those of several commands have no command.
var texts = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	commands, name := []string{""}, ""
	for line := range strings.Lines(flagTexts) {
		first, rest, named := strings.Cut(strings.TrimSpace(line), ": ")
		header, isHeader := strings.CutPrefix(first, "[")
		switch {
		case first == "" || first[0] == '#':
			continue
		case isHeader:
			commands = strings.Fields(strings.TrimSuffix(header, "]"))
			continue
		case line[0] == ' ':
			rest = " " + strings.TrimSpace(line)
		case named:
			name = first
		}
		for _, c := range commands {
			out[c+" "+name] += rest
		}
	}
	return out
})

// textOf is what help says of the flag of a command.
func textOf(command, name string) string { return cmp.Or(texts()[command+" "+name], texts()[" "+name]) }
