package codec

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

//go:embed results.schema.json
var schemaJSON []byte

// Schema returns the JSON Schema (2020-12) of the form that [Write] stores.
func Schema() []byte { return bytes.Clone(schemaJSON) }

var compiled = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaJSON))
	if err != nil {
		return nil, err
	}
	const name = "results.schema.json"
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, doc); err != nil {
		return nil, err
	}
	return c.Compile(name)
})

// checkSchema holds encoded results against the schema. Decoding alone would take
// a missing leak for a leak of 0.
func checkSchema(b []byte) error {
	s, err := compiled()
	if err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return jsonError(b, err)
	}
	err = s.Validate(doc)
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	// The innermost first cause says it in one line.
	for len(invalid.Causes) > 0 {
		invalid = invalid.Causes[0]
	}
	where := strings.Join(invalid.InstanceLocation, ".")
	if where == "" {
		where = "the file"
	}
	what := invalid.ErrorKind.LocalizedString(message.NewPrinter(language.English))
	return fmt.Errorf("%s: %s", shortened(where), shortened(what))
}
