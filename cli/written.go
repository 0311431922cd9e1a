package cli

import (
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/results/render"
)

// written is what a command made of records, as --json shows it.
type written struct {
	// Records are the files and directories that were given.
	Records []string `json:"records"`
	// Files that were made, in their order.
	Files []writtenFile `json:"files"`
	// Runs that the record holds; of merge alone.
	Runs int `json:"runs,omitempty"`
	// Notes say what could not be made, and why.
	Notes []string `json:"notes,omitempty"`
}

type writtenFile struct {
	// Name of the file with its directory, or alone where it was not written.
	Name string `json:"name"`
	// Bytes is its size.
	Bytes int `json:"bytes"`
	// Text is what it would hold; empty where it was written.
	Text string `json:"text,omitempty"`
}

func (w *written) add(name string, content []byte) {
	w.Files = append(w.Files, writtenFile{Name: name, Bytes: len(content)})
}

// addText adds a file that is not written.
func (w *written) addText(o render.Output) {
	w.Files = append(w.Files, writtenFile{Name: o.Name, Bytes: len(o.Bytes), Text: string(o.Bytes)})
}

// tell writes it where it was asked for.
func (w *written) tell(out io.Writer, asJSON bool) error {
	if !asJSON {
		return nil
	}
	if w.Records == nil {
		w.Records = []string{}
	}
	if err := encodeJSON(out, w); err != nil {
		return fail(ExitFailed, err)
	}
	return nil
}

// addDocument adds the flag of commands that write files.
func addDocument(cmd *cobra.Command, p *bool) {
	cmd.Flags().BoolVar(p, "json", false, "say what was read and written, as JSON on standard output")
}

// mostDrawings is how many drawings are named one by one.
const mostDrawings = 8

// writtenFiles names files that were written. Of many drawings it says how many there are.
func writtenFiles(names []string) string {
	var named []string
	drawings := 0
	for _, n := range names {
		switch path.Ext(n) {
		case ".svg", ".png":
			drawings++
		default:
			named = append(named, n)
		}
	}
	if drawings <= mostDrawings {
		return strings.Join(names, ", ")
	}
	return strings.Join(append(named, fmt.Sprintf("%d drawings", drawings)), ", ")
}
