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
	var buffer bytes.Buffer
	buffer.WriteString("# quotabench " + command +
		" --config FILE does this run. Flags that are given too win over it;\n" +
		"# null leaves a value to the default. Paths are relative to the working directory.\n")
	for _, setting := range s.table {
		if setting.Shorthand || setting.FlagOnly {
			continue
		}
		fmt.Fprintf(&buffer, "\n# %s\n", strings.ReplaceAll(setting.Doc, "`", ""))
		value, err := s.yaml(setting)
		if err != nil {
			return err
		}
		if text := remarks[setting.Name]; text != "" {
			value += " # " + text
		}
		if setting.Secret && strings.Contains(value, redact.Hidden) {
			fmt.Fprintf(&buffer, "# The password is not shown: write it in place of %s, or set %s.\n", redact.Hidden,
				setting.PasswordFrom)
		}
		buffer.WriteString(setting.Name + ":" + value + "\n")
	}
	_, err := w.Write(buffer.Bytes())
	return err
}

// yaml is what follows a setting's key and a colon.
func (s *Set) yaml(setting Setting) (string, error) {
	text := setting.Value.String()
	switch {
	case setting.Value.items != nil:
		if len(*setting.Value.items) == 0 {
			return " []", nil
		}
		list := ""
		for _, item := range *setting.Value.items {
			text, err := plain(item)
			if err != nil {
				return "", err
			}
			list += "\n  - " + text
		}
		return list, nil
	case setting.Computed && (text == "" || text == "0" && !setting.Value.quoted && !s.Given(setting.Name)):
		return " null", nil
	case setting.Value.quoted:
		q, err := plain(text)
		return " " + q, err
	}
	return " " + text, nil
}

// plain is a text without passwords as YAML, in quotes if it would be read as something else.
func plain(text string) (string, error) {
	data, err := yaml.MarshalWithOptions(redact.URLs(text), yaml.UseLiteralStyleIfMultiline(false))
	return strings.TrimSpace(string(data)), err
}
