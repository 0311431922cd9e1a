package postgres

import (
	"context"

	"github.com/quotabench/quotabench/internal/stores/server"
	"github.com/quotabench/quotabench/stores"
)

func survey(context.Context) []stores.Finding {
	f := stores.Finding{Name: "postgresql", Advice: "--postgres process"}
	user, err := account()
	if err != nil {
		f.Detail, f.Advice = err.Error(), "run as a user other than root, or use --postgres with a URL"
		return []stores.Finding{f}
	}
	bin, err := find()
	if err != nil {
		f.Detail, f.Advice = "initdb and postgres not found on the PATH or in the usual folders",
			server.Install("postgresql", "postgresql-server", "postgresql", "postgresql@17")
		return []stores.Finding{f}
	}
	f.Found, f.Detail = true, bin
	if user != nil {
		f.Detail += ", to be run as user " + user.Name
	}
	return []stores.Finding{f}
}
