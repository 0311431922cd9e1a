package settings

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/quotabench/quotabench/internal/redact"
	"github.com/quotabench/quotabench/internal/version"
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

// Portable is a configuration file of the settings that are given, and of those that are named, for another machine. What stays
// with this one is an error: other files, stores and where to write.
func (s *Set) Portable(named ...string) (string, error) {
	var b strings.Builder
	for _, x := range s.table {
		value, err := s.yaml(x)
		switch {
		case err != nil:
			return "", err
		case x.Name == FileFlag || !s.Given(x.Name) && !slices.Contains(named, x.Name):
			continue
		case x.Secret:
			return "", s.Wrong(x.Name, errors.New("a URL may hold a password: leave it out, and put it into the Secret"))
		case x.FlagOnly || slices.Contains([]string{"out", "history", "metrics", "trace", "against"}, x.Name):
			return "", s.Wrong(x.Name, errors.New("a pod has no use for it: leave it out"))
		case strings.HasPrefix(x.Value.String(), "@"):
			return "", s.Wrong(x.Name, errors.New("a pod does not have that file: write what it holds"))
		}
		b.WriteString(x.Name + ":" + value + "\n")
	}
	return b.String(), nil
}

// Fingerprint is equal for equal values of the settings that a configuration file takes, in equal programs. What is shown and
// kept, and the settings that are named, do not count.
func (s *Set) Fingerprint(except ...string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, version.Text())
	for _, x := range s.table {
		if x.FlagOnly || x.Title == Output || slices.Contains(except, x.Name) {
			continue
		}
		value, err := s.yaml(x)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s:%s\n", x.Name, value)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
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
