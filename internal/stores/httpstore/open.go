package httpstore

import (
	"context"
	"runtime"

	"github.com/quotabench/quotabench/internal/stores/server"
	"github.com/quotabench/quotabench/stores"
)

// OpenSpec opens what spec names: "auto" or "process". pack is the program's package
// in Debian.
func OpenSpec(ctx context.Context, d *stores.Driver, pack string, p *Program, spec string, o stores.Options) (*Gateway, error) {
	if spec != "auto" && spec != "process" {
		return nil, d.Refuse(spec)
	}
	bin, err := Find(d, pack)
	if err != nil && spec == "auto" {
		return nil, &stores.AbsentError{Reason: stores.Info{Kind: stores.KindNone, Detail: err.Error()}}
	}
	if err != nil {
		return nil, err
	}
	return Open(ctx, p, bin, o)
}

// Survey looks for the program of a driver.
func Survey(d *stores.Driver, pack string) []stores.Finding {
	f := stores.Finding{Name: d.Name, Advice: "--" + d.Name + " process"}
	bin, ok := server.Find(d.Name)
	switch {
	case runtime.GOOS == "windows":
		f.Detail, f.Advice = "servers are not started on this system", "measure one of yours by --service URL"
	case !ok:
		f.Detail, f.Advice = "not found on the PATH or in the usual folders", server.Install(pack, d.Name, d.Name, d.Name)
	default:
		f.Found, f.Detail = true, bin
	}
	return []stores.Finding{f}
}
