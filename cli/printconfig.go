package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/goccy/go-yaml"
)

// print writes the configuration in force, as --config takes it; unit is that of
// the policy's limit.
func (s *settings) print(w io.Writer, command, unit string) error {
	var b bytes.Buffer
	b.WriteString("# quotabench " + command + " --config FILE does this run. Flags given beside it win over it;\n" +
		"# null leaves a value to the default. Paths are relative to the working directory.\n")
	for _, x := range s.table {
		if x.shorthand {
			continue
		}
		fmt.Fprintf(&b, "\n# %s\n", strings.ReplaceAll(x.doc, "`", ""))
		line, err := s.render(x)
		if err != nil {
			return err
		}
		if x.name == "limit" {
			line += " # " + unit
		}
		if x.secret && strings.Contains(line, hidden) {
			fmt.Fprintf(&b, "# The password is not shown: write it in place of %s, or set %s.\n", hidden, x.passwordFrom)
		}
		b.WriteString(line + "\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// render is a setting as YAML, without a newline.
func (s *settings) render(x setting) (string, error) {
	switch v := x.value.(type) {
	case *list:
		if len(*v.p) == 0 {
			return x.name + ": []", nil
		}
		text := x.name + ":"
		for _, item := range *v.p {
			q, err := plain(redactURLs(item))
			if err != nil {
				return "", err
			}
			text += "\n  - " + q
		}
		return text, nil
	case *text:
		if *v.p == "" && x.computed {
			return x.name + ": null", nil
		}
		q, err := plain(redactURLs(*v.p))
		return x.name + ": " + q, err
	case *option:
		if *v.p == "" {
			return x.name + ": null", nil
		}
		if v.holds(scalarText) {
			q, err := plain(redactURLs(*v.p))
			return x.name + ": " + q, err
		}
	}
	if x.computed && !s.given(x.name) && x.value.String() == "0" {
		return x.name + ": null", nil
	}
	return x.name + ": " + x.value.String(), nil
}

// plain is a text as YAML, in quotes where it would be read as something else.
func plain(s string) (string, error) {
	b, err := yaml.MarshalWithOptions(s, yaml.UseLiteralStyleIfMultiline(false))
	return strings.TrimSpace(string(b)), err
}
