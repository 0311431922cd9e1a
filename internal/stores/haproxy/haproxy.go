// Package haproxy starts HAProxy servers for runs, with a stick table that counts
// requests in their configuration. It is a driver of package stores, which registers
// itself when it is imported. HAProxy servers of a user's own are measured as services:
// see package [github.com/quotabench/quotabench/internal/stores/service].
//
// A strategy is given a client with two methods, HTTP and Locate. The settings of
// Locate are period (e.g. "10s" or "250ms"), above (requests per period from which on
// more are denied) and threads.
package haproxy

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

// Open starts HAProxy as spec says: "auto" or "process". auto is process if HAProxy is
// found on this machine, and otherwise an [stores.AbsentError].
func Open(ctx context.Context, spec string, options stores.Options) (*httpstore.Gateway, error) {
	return program.Open(ctx, spec, options)
}

//go:embed haproxy.cfg.tmpl
var configText string

var program = httpstore.Program{
	Name: "haproxy", Title: "HAProxy",
	Template: template.Must(template.New("haproxy.cfg").Parse(configText)),
	Valid: map[string]*regexp.Regexp{
		"period": regexp.MustCompile(`^[1-9][0-9]{0,9}(ms|s)$`),
		"above":  regexp.MustCompile(`^[1-9][0-9]{0,8}$`), "threads": regexp.MustCompile(`^[1-9][0-9]?$`),
	},
	// -db keeps it from going into the background.
	Command: func(bin, file string) *exec.Cmd { return exec.Command(bin, "-db", "-q", "-f", file) },
}
