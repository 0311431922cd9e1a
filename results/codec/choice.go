package codec

import "github.com/quotabench/quotabench/results"

// ChoiceJSON renders a choice. It fits [schema.Choice].
func ChoiceJSON(c *results.Choice) ([]byte, error) {
	b, err := indented(c)
	if err == nil {
		err = checkAgainst(compiled.choice, b)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}
