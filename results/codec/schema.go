package codec

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/quotabench/quotabench/results/schema"
)

// compiled are the schemas of the records.
var compiled = struct {
	results, series, exploration func() (*jsonschema.Schema, error)
}{compile("results.schema.json"), compile("series.schema.json"), compile("exploration.schema.json")}

func compile(file string) func() (*jsonschema.Schema, error) {
	return sync.OnceValues(func() (*jsonschema.Schema, error) {
		text, err := schema.Files.ReadFile(file)
		if err != nil {
			return nil, err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		const name = "record.schema.json"
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource(name, doc); err != nil {
			return nil, err
		}
		return compiler.Compile(name)
	})
}

// checkAgainst checks a record against its schema. Decoding alone would take a missing leak for a leak of 0.
func checkAgainst(form func() (*jsonschema.Schema, error), data []byte) error {
	s, err := form()
	if err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return jsonError(data, err)
	}
	err = s.Validate(doc)
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	// The innermost first cause says it in one line. Summaries repeat what is wrong
	// with a run.
	for len(invalid.Causes) > 0 {
		i := slices.IndexFunc(invalid.Causes, func(validationError *jsonschema.ValidationError) bool {
			return len(validationError.InstanceLocation) == 0 || validationError.InstanceLocation[0] != "summaries"
		})
		invalid = invalid.Causes[max(i, 0)]
	}
	where := strings.Join(invalid.InstanceLocation, ".")
	if where == "" {
		where = "the file"
	}
	what := invalid.ErrorKind.LocalizedString(message.NewPrinter(language.English))
	return fmt.Errorf("%s: %s", shortened(where), shortened(what))
}
