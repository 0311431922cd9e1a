package cli

import (
	"embed"
	"strings"

	"github.com/spf13/cobra"
)

//go:embed commands/*.txt
var commandTexts embed.FS

// described gives a command the text of the file of its name: a line on how it is used, a line on what it is for,
// and after blank lines an explanation and examples.
func described(name string, cmd *cobra.Command) *cobra.Command {
	b, err := commandTexts.ReadFile("commands/" + name + ".txt")
	if err != nil {
		panic(err) // the files are part of the program
	}
	text, examples, _ := strings.Cut(strings.TrimSuffix(string(b), "\n"), "\n\nExamples:\n")
	head, long, _ := strings.Cut(text, "\n\n")
	cmd.Use, cmd.Short, _ = strings.Cut(head, "\n")
	cmd.Long, cmd.Example = long, examples
	return cmd
}
