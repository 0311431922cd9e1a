// Package kubernetes writes manifests of Jobs whose pods share a measurement, or the simulations or searches of one plan.
package kubernetes

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/template"
)

// Job is what the manifests are made from.
type Job struct {
	// Name begins the names of all objects: a label of DNS of at most 40 characters.
	Name string
	// Command of each part is run, sim or explore, and Plan its configuration file.
	Command, Plan string
	// Parts is how many pods share the work.
	Parts int
	// Coordinated parts begin at one instant, with Token as their secret, and their record is one.
	Coordinated bool
	Token       string
	// Stores are kinds of stores whose URLs are in the Secret, by these names.
	Stores []string
	Secret string
	// Image of the program.
	Image string
	// Claim is a volume for results; empty for one that ends with its pod.
	Claim string
	// CPU and Memory that a pod asks for, as quantities of Kubernetes.
	CPU, Memory string
	// TTL is for how many seconds the Jobs stay once they have finished.
	TTL int64
	// Variable names the environment variable that stands for a kind of store.
	Variable func(kind string) string
}

var (
	dnsLabel = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$`)
	object   = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$`)
	quantity = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$`)
)

// CheckName reports what is wrong with the name of a job.
func CheckName(text string) error {
	return match(dnsLabel, text, "1 to 40 lower-case letters, digits and hyphens, a letter first and no hyphen last")
}

// CheckObject reports what is wrong with the name of a Secret or a claim.
func CheckObject(text string) error {
	return match(object, text, "lower-case letters, digits, hyphens and dots, as Kubernetes has them in names")
}

// CheckQuantity reports what is wrong with a quantity.
func CheckQuantity(text string) error {
	return match(quantity, text, "a quantity of Kubernetes such as 2, 500m or 1Gi")
}

func match(form *regexp.Regexp, text, want string) error {
	if !form.MatchString(text) {
		return fmt.Errorf("give %s, not %q", want, text)
	}
	return nil
}

//go:embed job.yaml.tmpl
var manifests string

// Write writes the manifests as YAML.
func (j *Job) Write(w io.Writer) error {
	t, err := template.New("job").Funcs(template.FuncMap{
		"quote": quoted, "labels": labels, "variable": j.Variable,
	}).Parse(manifests)
	if err != nil {
		return err
	}
	return t.Execute(w, j)
}

// quoted is a text as JSON, which YAML reads as the same text whatever is in it.
func quoted(text string) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(text)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// labels tell the objects of a job apart from others, and its pods by what they do.
func labels(name, role string) string {
	text := fmt.Sprintf(`{app.kubernetes.io/name: quotabench, app.kubernetes.io/instance: %q`, name)
	if role != "" {
		text += ", app.kubernetes.io/component: " + role
	}
	return text + "}"
}
