package html

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/quotabench/quotabench/internal/report/claims"
	"github.com/quotabench/quotabench/internal/report/figures"
)

//go:embed claims.html.tmpl
var claimsTemplate string

var claimsPage = template.Must(template.New("claims").Parse(claimsTemplate))

// WriteClaims writes the verdicts on claims as one page.
func WriteClaims(w io.Writer, report *claims.Report) error {
	return claimsPage.Execute(w, struct {
		*claims.Report
		Style    template.CSS
		Verdicts []claims.Verdict
	}{report, template.CSS(style), claims.Verdicts})
}

//go:embed faults.html.tmpl
var faultsTemplate string

var faultsPage = template.Must(template.New("faults").Parse(faultsTemplate))

// WriteFaults writes a matrix of strategies and faults as one page.
func WriteFaults(w io.Writer, report *claims.Report) error {
	var columns []*figures.Figure
	for _, key := range figures.Table("faults") {
		columns = append(columns, figures.Of(key))
	}
	return faultsPage.Execute(w, map[string]any{
		"Style": template.CSS(style), "Columns": columns, "Marks": claims.Marks,
		"Faults":     report.ByFault(),
		"Strategies": report.ByStrategy(),
	})
}
