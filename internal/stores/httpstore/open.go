package httpstore

import (
	"context"
	"fmt"

	"github.com/quotabench/quotabench/internal/stores/server"
	"github.com/quotabench/quotabench/stores"
)

// Driver is the driver of the program.
func (p *Program) Driver() stores.Driver {
	return stores.Driver{
		Name: p.Name, Title: p.Title,
		Choices: []stores.Choice{
			{Word: "auto", Doc: "processes if " + p.Title + " is installed, else none; the default"},
			{Word: "process", Doc: p.Title + " of this machine, started as children and removed afterwards"},
		},
		Default: "auto", Open: stores.Opener(p.Open), Survey: p.survey,
	}
}

// Open opens what spec names: "auto" or "process". auto is process where the program is
// found on this machine, and else an [stores.AbsentError].
func (p *Program) Open(ctx context.Context, spec string, o stores.Options) (*Gateway, error) {
	if spec != "auto" && spec != "process" {
		d := p.Driver()
		return nil, d.Refuse(spec)
	}
	if bin, ok := server.Find(p.Name); ok {
		return open(ctx, p, bin, o)
	}
	err := fmt.Errorf("no %s found on the PATH or in the usual folders: install it (%s)", p.Name, p.install())
	if spec == "auto" {
		err = &stores.AbsentError{Reason: stores.Info{Kind: stores.KindNone, Detail: err.Error()}}
	}
	return nil, err
}

func (p *Program) install() string { return server.Install(p.Package, p.Name, p.Name, p.Name) }

func (p *Program) survey(context.Context) []stores.Finding {
	bin, _ := server.Find(p.Name)
	f := server.SurveyProgram(p.Name, bin, "--"+p.Name+" process", "measure one of yours by --service URL", p.install())
	return []stores.Finding{stores.Finding(f)}
}
