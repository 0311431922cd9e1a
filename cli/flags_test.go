package cli

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestFlagTexts: every flag has a text, and every text of flags.txt is of a flag.
func TestFlagTexts(t *testing.T) {
	b, err := os.ReadFile("../internal/app/settings/flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string]*pflag.FlagSet{}
	for _, c := range Command(io.Discard, io.Discard).Commands() {
		commands[c.Name()] = c.Flags()
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no text", c.Name(), f.Name)
			}
		})
	}
	texts := 0
	var of []string // commands; nil for any
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		name, text, _ := strings.Cut(line, ": ")
		switch {
		case line == "" || line[0] == '#' || line[0] == ' ':
		case line[0] == '[':
			of = strings.Fields(strings.Trim(line, "[]"))
		default:
			texts++
			said := 0
			for command, flags := range commands {
				asked := of == nil || strings.Contains(" "+strings.Join(of, " ")+" ", " "+command+" ")
				if f := flags.Lookup(name); asked && f != nil && strings.HasPrefix(f.Usage, text) {
					said++
				}
			}
			if said == 0 || said < len(of) {
				t.Errorf("the text of %s of %v is said of %d flags", name, of, said)
			}
		}
	}
	if texts < 80 {
		t.Errorf("%d texts were looked at", texts)
	}
}
