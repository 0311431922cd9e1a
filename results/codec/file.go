package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/quotabench/quotabench/internal/kit/files"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/results"
)

// Encode renders a file as it is stored: indented JSON that ends in a newline,
// the same bytes for the same file. Schema 0 is taken as the current one.
// Figures that are not finite and values that the schema does not know are errors.
func Encode(f results.File) ([]byte, error) {
	if f.Schema == 0 {
		f.Schema = results.SchemaVersion
	}
	if f.Schema != results.SchemaVersion {
		return nil, fmt.Errorf("cannot write schema %d, only %d", f.Schema, results.SchemaVersion)
	}
	f.Summaries = results.Summarise(f.Runs)
	f = complete(f)
	if err := checkFinite(&f); err != nil {
		return nil, err
	}
	b, err := indented(f)
	if err == nil {
		_, err = shaped(b)
	}
	if err == nil {
		err = checkAgainst(compiled.results, b)
	}
	if err != nil {
		return nil, fmt.Errorf("encode results: %w", err)
	}
	return b, nil
}

// indented renders a record as indented JSON that ends in a newline, the same bytes for the
// same record.
func indented(record any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(record)
	return b.Bytes(), err
}

// Write stores a file at path. A reader sees the file that was there before or
// the whole new one, never a part.
func Write(path string, f results.File) (err error) {
	b, err := Encode(f)
	if err != nil {
		return err
	}
	return files.Write(path, b)
}

// Read loads a file that [Write] stored. Everything that is not exactly of this
// version's form is an error of one line that begins with the path.
func Read(path string) (results.File, error) {
	return read(path, Decode)
}

// read decodes the record at a path.
func read[T any](path string, decode func([]byte) (T, error)) (record T, err error) {
	b, err := readFile(path)
	if err != nil {
		return record, err
	}
	whole, err := decode(b)
	if err != nil {
		return record, fmt.Errorf("%s: %w", path, err)
	}
	return whole, nil
}

// Decode is [Read] for bytes at hand.
func Decode(b []byte) (results.File, error) { return shapedAs(b, decodeFile) }

func decodeFile(d document) (f results.File, err error) {
	earlier := d.top["schema"] == json.Number(strconv.Itoa(earlierSchema))
	if earlier {
		d, err = renewed(d)
		if err != nil {
			return results.File{}, err
		}
	}
	if err := d.decode(&f, results.SchemaVersion, "measure again, or use the quotabench that wrote it", compiled.results); err != nil {
		return results.File{}, err
	}
	for i := range f.Runs {
		if err := checkHistograms(&f.Runs[i]); err != nil {
			return results.File{}, fmt.Errorf("runs[%d] (%s): %w", i, shortened(format.Plain(f.Runs[i].Params.Label)), err)
		}
	}
	if earlier {
		f.Summaries = results.Summarise(f.Runs)
	}
	return f, checkSummaries(&f)
}

// decode decodes a record, all of which must be of this version's form. It comes before the schema: its
// errors name lines and not indices.
func (d document) decode(to any, version int, otherwise string, form func() (*jsonschema.Schema, error)) error {
	if err := d.checkVersion(version, otherwise); err != nil {
		return err
	}
	j := json.NewDecoder(bytes.NewReader(d.text))
	j.DisallowUnknownFields()
	if err := j.Decode(to); err != nil {
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
func jsonError(b []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("line %d: not valid JSON: %w", lineAt(b, syntax.Offset), err)
	case errors.As(err, &kind):
		return fmt.Errorf("line %d: field %q cannot hold a %s", lineAt(b, kind.Offset), kind.Field, kind.Value)
	case errors.Is(err, io.EOF) && len(bytes.TrimSpace(b)) == 0:
		return errors.New("is empty: not a record of quotabench")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("line %d: ends too early, it was cut off", lineAt(b, int64(len(b))))
	default:
		return fmt.Errorf("not a record of quotabench: %w", err)
	}
}

func lineAt(b []byte, offset int64) int {
	return 1 + bytes.Count(b[:min(max(offset, 0), int64(len(b)))], []byte("\n"))
}

func checkHistograms(r *results.Run) error {
	all := []*results.Latency{&r.Service}
	if r.Response != nil {
		all = append(all, r.Response)
	}
	if r.Settlement != nil {
		all = append(all, &r.Settlement.Service)
	}
	for _, l := range all {
		if err := l.Check(); err != nil {
			return err
		}
	}
	if r.Paced != nil {
		return checkHistograms(r.Paced)
	}
	return nil
}

// complete returns a copy whose lists and maps are empty rather than null, so that readers in
// other languages need one case less, except for those that are absent then.
func complete(f results.File) results.File {
	return completed(reflect.ValueOf(f)).Interface().(results.File)
}

func completed(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(completed(v.Elem()))
		}
	case reflect.Slice:
		if v.Len() > 0 && v.Type().Elem().Kind() == reflect.Struct {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(completed(v.Index(i)))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(completedField(v.Type().Field(i), v.Field(i)))
			}
		}
	}
	return out
}

func completedField(f reflect.StructField, v reflect.Value) reflect.Value {
	tag := f.Tag.Get("json")
	always := tag != "-" && !strings.Contains(tag, ",omitempty")
	switch {
	case always && v.Kind() == reflect.Slice && v.IsNil():
		return reflect.MakeSlice(v.Type(), 0, 0)
	case always && v.Kind() == reflect.Map && v.IsNil():
		return reflect.MakeMap(v.Type())
	}
	return completed(v)
}
