package cli

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quotabench/quotabench/quota"
)

// Where a URL can hold a password: in the user's part, however many of its special
// characters were forgotten to be escaped, and in a parameter, which for services may be a
// key or a token, too.
// In the last form the scheme was forgotten.
var (
	userPassword  = regexp.MustCompile(`(://[^/@:?#\s]*):.*@`)
	paramPassword = regexp.MustCompile(`(?i)([?&][a-z_-]*(?:password|token|secret|key)=)[^&#\s"']*`)
	pairPassword  = regexp.MustCompile(`(?i)(^|[\s"'])(password=)[^\s"']+`)
	barePassword  = regexp.MustCompile(`(^|[\s"'=(,])([^\s"'=(,:/@]*):[^/\s]\S*@`)
)

// hidden stands for a password that is not shown.
const hidden = "***"

// redactURLs takes passwords of URLs out of a text.
func redactURLs(s string) string {
	parts := strings.Split(s, exampleLogin) // of our own messages
	for i, p := range parts {
		p = userPassword.ReplaceAllString(p, "${1}:"+hidden+"@")
		parts[i] = paramPassword.ReplaceAllStringFunc(p, func(param string) string {
			name, value, _ := strings.Cut(param, "=")
			if value == "{subject}" { // of a service, whose key is the subject
				return param
			}
			return name + "=" + hidden
		})
	}
	return strings.Join(parts, exampleLogin)
}

// exampleLogin is how messages show what a URL looks like.
const exampleLogin = "://user:password@host:port"

// redact takes all that may be a password out of a text that is shown. It is applied
// to all messages, and not to what is read again.
func redact(s string) string {
	s = pairPassword.ReplaceAllString(redactURLs(s), "${1}${2}"+hidden)
	return barePassword.ReplaceAllString(s, "${1}${2}:"+hidden+"@")
}

// unredact takes what stands for a password out of a URL, so that the one from the
// environment counts.
func unredact(url string) string {
	url = strings.Replace(url, ":"+hidden+"@", "@", 1)
	return hiddenParam.ReplaceAllStringFunc(url, func(s string) string {
		if s[len(s)-1] == '&' {
			return s[:1]
		}
		return ""
	})
}

var hiddenParam = regexp.MustCompile(`(?i)[?&][a-z_-]*(?:password|token|secret|key)=\*\*\*&?`)

type argsKey struct{}

// withArgs keeps the arguments for [commandLine].
func withArgs(ctx context.Context, args []string) context.Context {
	return context.WithValue(ctx, argsKey{}, args)
}

// commandLine is how the program was called, as a shell would take it but for
// passwords in URLs.
func commandLine(ctx context.Context) string {
	args, ok := ctx.Value(argsKey{}).([]string)
	if !ok { // a program of its own that executes Command
		args = os.Args[1:]
	}
	words := []string{"quotabench"}
	for _, a := range slices.Clone(args) {
		words = append(words, quoted(redact(a)))
	}
	return strings.Join(words, " ")
}

// quoted puts a word in quotes where a shell would take it apart.
func quoted(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n\"'`$&|;<>()[]{}?*!#~\\") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// badFlag words what pflag finds wrong with a command line.
func badFlag(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return usagef("--%s %q: %w", invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap())
	}
	var empty *pflag.ValueRequiredError
	if errors.As(err, &empty) && empty.GetSpecifiedShortnames() == "" {
		wanted := "give one"
		if v, ok := empty.GetFlag().Value.(value); ok {
			wanted = v.wanted()
		}
		return usagef("--%s has no value: %s (see %s --help)", empty.GetSpecifiedName(), wanted, cmd.CommandPath())
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		return usagef("unknown flag --%s%s (see %s --help)", unknown.GetSpecifiedName(), nearest(unknown.GetSpecifiedName(), flagNames(cmd), "--"), cmd.CommandPath())
	}
	return usagef("%w (see %s --help)", err, cmd.CommandPath())
}

func flagNames(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// hint is a question in front of what to give, or nothing.
func hint(name string, names []string) string {
	if best := quota.Nearest(name, names); best != "" {
		return "did you mean " + best + "? "
	}
	return ""
}

// nearest suggests the name that was probably meant, or nothing.
func nearest(name string, names []string, prefix string) string {
	if best := quota.Nearest(name, names); best != "" {
		return ": did you mean " + prefix + best + "?"
	}
	return ""
}
