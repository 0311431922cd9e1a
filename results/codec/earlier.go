package codec

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/quotabench/quotabench/results"
)

// earlierSchema is the version of results before this one. It withheld timings that were
// disturbed, and its summaries follow from that rule.
const earlierSchema = 3

// renewed is a record of the earlier schema in the form of this one: without its summaries,
// which are computed anew, and with disturbed timings marked in place of discarded.
func renewed(d document) (document, error) {
	decoder := json.NewDecoder(bytes.NewReader(d.text))
	decoder.UseNumber()
	var whole map[string]any
	if err := decoder.Decode(&whole); err != nil {
		return d, jsonError(d.text, err)
	}
	version := json.Number(strconv.Itoa(results.SchemaVersion))
	whole["schema"] = version
	whole["summaries"] = []any{}
	runs, _ := whole["runs"].([]any)
	for _, run := range runs {
		markDisturbed(run)
	}
	text, err := json.Marshal(whole)
	if err != nil {
		return d, err
	}
	d.text = text
	d.top["schema"] = version
	return d, nil
}

// markDisturbed renews the audit of a run, and that of its open loop at the common rate.
func markDisturbed(run any) {
	fields, _ := run.(map[string]any)
	if fields == nil {
		return
	}
	markDisturbed(fields["paced"])
	audit, _ := fields["audit"].(map[string]any)
	delete(audit, "timings_valid")
	reasons, _ := audit["reasons"].([]any)
	for _, reason := range reasons {
		finding, _ := reason.(map[string]any)
		if finding["strikes"] == "round" {
			finding["strikes"] = results.Disturbs
		}
	}
}
