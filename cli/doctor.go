package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/rivo/uniseg"
	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/results/text/layout"
	"github.com/quotabench/quotabench/stores"
)

// state says at a glance how a line of doctor is meant.
type state string

// The states.
const (
	stateOK      state = "ok"
	stateMissing state = "missing" // can be had; the advice says how
	stateNote    state = "note"    // works, but has a say in the figures
)

// checkup is one line of doctor.
type checkup struct {
	Name   string `json:"name"`
	State  state  `json:"state"`
	Detail string `json:"detail"`
	// Advice is how to use it, how to get it, or what follows from it.
	Advice string `json:"advice,omitempty"`
	// Figures are the numbers in Detail.
	Figures map[string]float64 `json:"figures,omitempty"`
}

func doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine can run, and how to get the rest",
		Long: "Looks for the servers, container images and timers that a run can use, and says how to\n" +
			"get what is missing. Starts nothing, changes nothing, and takes less than a second.\n" +
			"Nothing that is missing is an error: embedded stand-ins are always there.",
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			lines := append(append(storeLines(cmd.Context()), environment()), machineLines(cmd.Context())...)
			if asJSON {
				return encodeJSON(cmd.OutOrStdout(), lines)
			}
			page, out := pageOf(cmd)
			return writeCheckups(out, page, lines)
		},
	}
	addJSON(cmd, &asJSON)
	return cmd
}

func storeLines(ctx context.Context) []checkup {
	var lines []checkup
	for _, f := range stores.Survey(ctx) {
		c := checkup{Name: f.Name, State: stateMissing, Detail: f.Detail, Advice: f.Advice}
		if f.Found {
			c.State = stateOK
		}
		lines = append(lines, c)
	}
	return lines
}

// writeCheckups writes one line each, in columns.
func writeCheckups(w io.Writer, page layout.Page, lines []checkup) error {
	names, states := 0, 0
	for _, c := range lines {
		names = max(names, uniseg.StringWidth(c.Name))
		states = max(states, len(c.State))
	}
	for _, c := range lines {
		text := c.Detail
		if c.Advice != "" {
			text += ": " + c.Advice
		}
		head := layout.Pad(c.Name, names) + "  "
		for i, line := range page.Paragraph(head+layout.Pad(string(c.State), states)+"  ", text) {
			if i == 0 {
				rest := strings.TrimPrefix(line, head+string(c.State))
				line = head + page.Paint(tones[c.State], string(c.State)) + rest
			}
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// tones of the states.
var tones = map[state]layout.Tone{stateOK: layout.Good, stateMissing: layout.Caution, stateNote: layout.Caution}
