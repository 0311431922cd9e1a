// Package nginx starts nginx servers for runs, with a limit_req in their
// configuration. It is a driver of package stores, which registers itself when it is
// imported. nginx servers of a user's own are measured as services: see package
// [github.com/quotabench/quotabench/internal/stores/service].
//
// A strategy is given a client with two methods, HTTP and Locate. The settings of
// Locate are rate (as limit_req_zone takes it, e.g. "10r/s"), burst, nodelay (true or
// false), workers and answer (file or return).
package nginx

import (
	"context"
	_ "embed"
	"os/exec"
	"regexp"
	"text/template"

	"github.com/quotabench/quotabench/internal/stores/httpstore"
	"github.com/quotabench/quotabench/stores"
)

func init() { stores.Register(program.Driver()) }

// Open starts nginx as spec says: "auto" or "process". auto is process if nginx is
// found on this machine, and otherwise an [stores.AbsentError].
func Open(ctx context.Context, spec string, options stores.Options) (*httpstore.Gateway, error) {
	return program.Open(ctx, spec, options)
}

//go:embed nginx.conf.tmpl
var configText string

var program = httpstore.Program{
	Name: "nginx", Title: "nginx",
	Template: template.Must(template.New("nginx.conf").Parse(configText)),
	Valid: map[string]*regexp.Regexp{
		"rate": regexp.MustCompile(`^[1-9][0-9]{0,8}r/[sm]$`), "burst": regexp.MustCompile(`^(0|[1-9][0-9]{0,8})$`),
		"nodelay": regexp.MustCompile(`^(true|false)$`),
		"workers": regexp.MustCompile(`^[1-9][0-9]{0,2}$`), "answer": regexp.MustCompile(`^(file|return)$`),
	},
	Command: func(bin, file string) *exec.Cmd {
		return exec.Command(bin, "-e", "stderr", "-p", ".", "-c", file)
	},
}
