package html

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/quotabench/quotabench/internal/claims"
)

//go:embed claims.html.tmpl
var claimsTemplate string

var claimsPage = template.Must(template.New("claims").Parse(claimsTemplate))

// WriteClaims writes the verdicts on claims as one page.
func WriteClaims(w io.Writer, r *claims.Report) error {
	return claimsPage.Execute(w, struct {
		*claims.Report
		Style    template.CSS
		Verdicts []claims.Verdict
	}{r, template.CSS(style), claims.Verdicts})
}
