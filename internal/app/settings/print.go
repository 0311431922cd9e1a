package settings

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/quotabench/quotabench/internal/kit/redact"
)

// Print writes the configuration in force, as --config takes it. Remarks stand behind the
// values of the settings with these names.
func (s *Set) Print(w io.Writer, command string, remarks map[string]string) error {
	var b bytes.Buffer
	b.WriteString("# quotabench " + command + " --config FILE does this run. Flags that are given too win over it;\n" +
		"# null leaves a value to the default. Paths are relative to the working directory.\n")
	for _, x := range s.table {
		if x.Shorthand || x.FlagOnly {
			continue
		}
		fmt.Fprintf(&b, "\n# %s\n", strings.ReplaceAll(x.Doc, "`", ""))
		value, err := s.yaml(x)
		if err != nil {
			return err
		}
		if r := remarks[x.Name]; r != "" {
			value += " # " + r
		}
		if x.Secret && strings.Contains(value, redact.Hidden) {
			fmt.Fprintf(&b, "# The password is not shown: write it in place of %s, or set %s.\n", redact.Hidden, x.PasswordFrom)
		}
		b.WriteString(x.Name + ":" + value + "\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// yaml is what follows a setting's key and a colon.
func (s *Set) yaml(x Setting) (string, error) {
	text := x.Value.String()
	switch {
	case x.Value.items != nil:
		if len(*x.Value.items) == 0 {
			return " []", nil
		}
		list := ""
		for _, item := range *x.Value.items {
			q, err := plain(item)
			if err != nil {
				return "", err
			}
			list += "\n  - " + q
		}
		return list, nil
	case x.Computed && (text == "" || text == "0" && !x.Value.quoted && !s.Given(x.Name)):
		return " null", nil
	case x.Value.quoted:
		q, err := plain(text)
		return " " + q, err
	}
	return " " + text, nil
}

// plain is a text without passwords as YAML, in quotes if it would be read as something else.
func plain(s string) (string, error) {
	b, err := yaml.MarshalWithOptions(redact.URLs(s), yaml.UseLiteralStyleIfMultiline(false))
	return strings.TrimSpace(string(b)), err
}
