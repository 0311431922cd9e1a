package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/quotabench/quotabench/internal/format"
)

// progress shows how far a measurement is: a bar on a terminal, plain lines
// elsewhere.
type progress struct {
	w     io.Writer
	bar   *progressbar.ProgressBar
	runs  int
	begun int
}

func newProgress(w io.Writer) *progress { return &progress{w: w} }

func (p *progress) begin(runs int) {
	p.runs = runs
	f, ok := unwrapped(p.w).(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return
	}
	p.bar = progressbar.NewOptions(runs,
		progressbar.OptionSetWriter(f),
		progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetRenderBlankState(true),
	)
}

func (p *progress) running(strategy string, round, rounds int) {
	p.begun++
	text := fmt.Sprintf("round %d of %d: %s", round, rounds, strategy)
	if p.bar == nil {
		fmt.Fprintf(p.w, "[%d/%d] %s\n", p.begun, p.runs, text)
		return
	}
	p.bar.Describe(fmt.Sprintf("%-48.48s", format.Visible(text)))
	p.show(p.bar.Set(p.begun - 1))
}

// line prints a message without leaving half a bar behind.
func (p *progress) line(text string) {
	if p.bar != nil {
		p.show(p.bar.Clear())
	}
	fmt.Fprintln(p.w, text)
}

func (p *progress) end() {
	if p.bar != nil {
		p.show(p.bar.Finish())
		p.show(p.bar.Clear())
	}
}

// show drops the error of drawing: a bar that cannot be drawn is not worth a run.
func (p *progress) show(error) {}
