package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/results"
)

// Encode renders a file as it is stored: indented JSON that ends in a newline,
// the same bytes for the same file. Schema 0 is taken as the current one.
// Figures that are not finite and values that the schema does not know are errors. What does
// not fit its schema is returned with the error: it was measured all the same.
func Encode(file results.File) ([]byte, error) {
	if file.Schema == 0 {
		file.Schema = results.SchemaVersion
	}
	if file.Schema != results.SchemaVersion {
		return nil, fmt.Errorf("cannot write schema %d, only %d", file.Schema, results.SchemaVersion)
	}
	file.Summaries = results.Summarise(file.Runs)
	file = complete(file)
	if err := checkFinite(&file); err != nil {
		return nil, err
	}
	data, err := indented(file)
	if err == nil {
		_, err = shaped(data)
	}
	if err == nil {
		err = checkAgainst(compiled.results, data)
	}
	if err != nil {
		return data, fmt.Errorf("encode results: %w", err)
	}
	return data, nil
}

// indented renders a record as indented JSON that ends in a newline, the same bytes for the
// same record.
func indented(record any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(record)
	return buffer.Bytes(), err
}

// Write stores a file at path. A reader sees the file that was there before or
// the whole new one, never a part.
func Write(path string, file results.File) (err error) {
	data, err := Encode(file)
	if err != nil {
		return err
	}
	return files.Write(path, data)
}

// Read loads a file that [Write] stored. Everything that is not exactly of this
// version's form is an error of one line that begins with the path.
func Read(path string) (results.File, error) {
	return read(path, Decode)
}

// read decodes the record at a path.
func read[T any](path string, decode func([]byte) (T, error)) (record T, err error) {
	data, err := readFile(path)
	if err != nil {
		return record, err
	}
	whole, err := decode(data)
	if err != nil {
		return record, fmt.Errorf("%s: %w", path, err)
	}
	return whole, nil
}

// Decode is [Read] for bytes at hand.
func Decode(data []byte) (results.File, error) { return shapedAs(data, decodeFile) }

func decodeFile(d document) (file results.File, err error) {
	if err := d.decode(&file, results.SchemaVersion, "measure again, or use the quotabench that wrote it",
		compiled.results); err != nil {
		return results.File{}, err
	}
	for i := range file.Runs {
		if err := checkHistograms(&file.Runs[i]); err != nil {
			return results.File{}, fmt.Errorf("runs[%d] (%s): %w", i, shortened(format.Plain(file.Runs[i].Params.Label)), err)
		}
	}
	return file, checkSummaries(&file)
}

// decode decodes a record, all of which must be of this version's form. It comes before the schema: its
// errors name lines and not indices.
func (d document) decode(value any, version int, otherwise string, form func() (*jsonschema.Schema, error)) error {
	if err := d.checkVersion(version, otherwise); err != nil {
		return err
	}
	j := json.NewDecoder(bytes.NewReader(d.text))
	j.DisallowUnknownFields()
	if err := j.Decode(value); err != nil {
		if strings.HasPrefix(err.Error(), "json: unknown field") {
			return fmt.Errorf("%s, which schema %d does not have: use the quotabench that wrote it",
				shortened(strings.TrimPrefix(err.Error(), "json: ")), version)
		}
		return jsonError(d.text, err)
	}
	return checkAgainst(form, d.text)
}

// checkVersion tells a record of another version apart from a damaged one. What is no number is left to the decoder.
func (d document) checkVersion(version int, otherwise string) error {
	number, _ := d.top["schema"].(json.Number)
	schema, err := strconv.Atoi(number.String())
	switch {
	case d.top["schema"] == nil:
		return errors.New(`has no "schema" field: not a record of quotabench`)
	case err != nil:
		return nil
	case schema > version:
		return fmt.Errorf("has schema %d, this quotabench reads %d: use a newer quotabench", schema, version)
	case schema < version:
		return fmt.Errorf("has schema %d, this quotabench reads %d: %s", schema, version, otherwise)
	}
	return nil
}

// jsonError puts a line number to a decoding error.
func jsonError(data []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("line %d: not valid JSON: %w", lineAt(data, syntax.Offset), err)
	case errors.As(err, &kind):
		return fmt.Errorf("line %d: field %q cannot hold a %s", lineAt(data, kind.Offset), named(kind.Field), kind.Value)
	case errors.Is(err, io.EOF) && len(bytes.TrimSpace(data)) == 0:
		return errors.New("is empty: not a record of quotabench")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("line %d: ends too early, it was cut off", lineAt(data, int64(len(data))))
	default:
		return fmt.Errorf("not a record of quotabench: %w", err)
	}
}

// named is the path of a field by its JSON names. Package json also has the Go names of embedded structs in it.
func named(path string) string {
	names := slices.DeleteFunc(strings.Split(path, "."), func(name string) bool {
		return strings.ToLower(name) != name
	})
	return strings.Join(names, ".")
}

func lineAt(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(max(offset, 0), int64(len(data)))], []byte("\n"))
}

func checkHistograms(run *results.Run) error {
	all := []*results.Latency{&run.Service}
	if run.Response != nil {
		all = append(all, run.Response)
	}
	if run.Settlement != nil {
		all = append(all, &run.Settlement.Service)
	}
	for _, latency := range all {
		if err := latency.Check(); err != nil {
			return err
		}
	}
	if run.Paced != nil {
		return checkHistograms(run.Paced)
	}
	return nil
}

// complete returns a copy whose lists and maps are empty rather than null, so that readers in
// other languages need one case less, except for those that are absent then.
func complete(file results.File) results.File {
	return completed(reflect.ValueOf(file)).Interface().(results.File)
}

func completed(value reflect.Value) reflect.Value {
	out := reflect.New(value.Type()).Elem()
	out.Set(value)
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			out.Set(reflect.New(value.Type().Elem()))
			out.Elem().Set(completed(value.Elem()))
		}
	case reflect.Slice:
		if value.Len() > 0 && value.Type().Elem().Kind() == reflect.Struct {
			out.Set(reflect.MakeSlice(value.Type(), value.Len(), value.Len()))
			for i := range value.Len() {
				out.Index(i).Set(completed(value.Index(i)))
			}
		}
	case reflect.Struct:
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				out.Field(i).Set(completedField(value.Type().Field(i), value.Field(i)))
			}
		}
	}
	return out
}

func completedField(field reflect.StructField, value reflect.Value) reflect.Value {
	tag := field.Tag.Get("json")
	always := tag != "-" && !strings.Contains(tag, ",omitempty")
	switch {
	case always && value.Kind() == reflect.Slice && value.IsNil():
		return reflect.MakeSlice(value.Type(), 0, 0)
	case always && value.Kind() == reflect.Map && value.IsNil():
		return reflect.MakeMap(value.Type())
	}
	return completed(value)
}
