package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// ask puts the questions that no flag has answered, where there is a terminal to answer
// them.
func (s *chooseSettings) ask(cmd *cobra.Command) error {
	in, ok := cmd.InOrStdin().(*os.File)
	if s.yes || !ok || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	if _, ok := terminal(cmd.ErrOrStderr()); !ok {
		return nil
	}
	_, err := before(cmd.Context(), func() (struct{}, error) { return struct{}{}, s.put(in, cmd.ErrOrStderr()) })
	return err
}

// put asks each question that no flag has answered. An empty answer takes the default,
// and one that does not fit is asked again. The end of the input takes all defaults that
// are left.
func (s *chooseSettings) put(in io.Reader, out io.Writer) error {
	fmt.Fprintln(out, "Enter takes the default in brackets; quotabench choose --help explains each question.")
	lines := bufio.NewReader(in)
	for _, name := range questions {
		if s.given(name) {
			continue
		}
		for x := s.lookup(name); ; {
			fmt.Fprintf(out, "%s [%s]: ", questionOf(name), defaultOf(x))
			line, err := lines.ReadString('\n')
			answer := strings.TrimSpace(line)
			if answer != "" {
				if wrong := s.answer(x, answer); wrong != nil {
					fmt.Fprintf(out, "  %v\n", wrong)
					if err == nil {
						continue
					}
				}
			}
			if errors.Is(err, io.EOF) {
				fmt.Fprintln(out)
				return nil
			}
			if err != nil {
				return fail(ExitUsage, fmt.Errorf("read the answer: %w", err))
			}
			break
		}
	}
	return nil
}

// answer takes one, if it fits.
func (s *chooseSettings) answer(x *setting, text string) error {
	if x.name == "policy" {
		if _, err := lookupPolicy(text); err != nil {
			return err
		}
	}
	if x.name == "leak" {
		if _, err := leakOf(text, 1); err != nil {
			return err
		}
	}
	return x.value.Set(text)
}

// questionOf is what is asked for a setting.
func questionOf(name string) string {
	return map[string]string{
		"policy":    "Policy: a name, or a text such as \"5 attempts per rolling 15m\"",
		"instances": "Application instances, in each region",
		"regions":   "Regions",
		"rate":      "Requests per second of the whole application",
		"subjects":  "Subjects: users, keys or addresses",
		"leak":      "Tolerated leak, in units or percent of the limit",
		"p99":       "Longest p99 of a decision, e.g. 5ms; 0 for none",
		"outage":    "While Redis cannot be reached: any, open (admit), closed (hold the limit), survive (decide and hold)",
		"uploads":   "Are units committed, refunded or abandoned, as by uploads: auto, yes, no",
	}[name]
}

func defaultOf(x *setting) string {
	return x.value.String()
}
