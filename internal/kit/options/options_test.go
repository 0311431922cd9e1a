package options_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/options"
	_ "github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/quota"
)

var planted = []quota.Option{
	{Name: "size", Type: "int", Default: "3"}, {Name: "cold", Type: "bool", Default: "false"},
	{Name: "form", Default: "flat"},
}

// declared are the options of "a", and "b" has none.
func declared(name string) ([]quota.Option, error) {
	switch name {
	case "a":
		return planted, nil
	case "b", "cold":
		return nil, nil
	}
	return nil, fmt.Errorf("there is no %s", name)
}

func TestList(t *testing.T) {
	for text, want := range map[string]string{
		"a":                   "[{a map[]}]",
		"a:size=4":            "[{a map[size:4]}]",
		"a:size=4, form=x:y":  "[{a map[form:x:y size:4]}]",
		"a:cold":              "[{a map[cold:true]}]",
		"a:size=4,cold,b":     "[{a map[cold:true size:4]} {b map[]}]",
		"a:size=4,b:size=5,a": "[{a map[size:4]} {b map[size:5]} {a map[]}]",
		"b:cold=true,cold":    "[{b map[cold:true]} {cold map[]}]", // which b has not declared
		"a:form=":             "[{a map[form:]}]",
		"size=4":              `option "size=4" follows no thing: write NAME:OPTION=VALUE`,
		"a,c:secret":          "there is no c",
		"a:size":              `option "size" of a is not of the form OPTION=VALUE`,
		"b:cold":              `option "cold" of b is not of the form OPTION=VALUE`,
		"a:":                  `option "" of a is not of the form OPTION=VALUE`,
		"a:=4":                `option "=4" of a is not of the form OPTION=VALUE`,
		"a:size=4,size=5":     `option "size" of a is given twice`,
		"a:cold,cold":         `option "cold" of a is given twice`,
	} {
		all, err := options.List(text, "thing", declared)
		if got := shown(all, err); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestOne(t *testing.T) {
	for text, want := range map[string]string{
		"a":             "{a map[]}",
		"a:size=4,cold": "{a map[cold:true size:4]}",
		"a:form=x:y":    "{a map[form:x:y]}",
		"a:form=x,y":    `option "y" of a is not of the form OPTION=VALUE`,
		"a:":            `option "" of a is not of the form OPTION=VALUE`,
		"a,b":           "there is no a,b",
		"size=4":        "there is no size=4",
		"c:secret":      "there is no c",
	} {
		one, err := options.One(text, "thing", declared)
		if got := shown(one, err); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func shown(v any, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(v)
}

// What is written is read as the same.
func TestText(t *testing.T) {
	for _, text := range []string{"a", "a:size=3", "a:size=4", "a:size=4,cold=true,form=x:y"} {
		one, err := options.One(text, "thing", declared)
		if err != nil {
			t.Fatal(err)
		}
		if got := options.Text(one.Name, planted, one.Given); got != text {
			t.Errorf("%q is written %q", text, got)
		}
	}
	if got := options.Text("b", nil, quota.Options{"z": "1", "a": "2"}); got != "b:a=2,z=1" {
		t.Errorf("options that are not declared are written %q", got)
	}
}

// FuzzList: whatever is typed is read, or refused in one line.
func FuzzList(f *testing.F) {
	f.Add("a:size=4,cold,b:form=x")
	f.Fuzz(func(t *testing.T, text string) {
		for _, read := range []func() error{
			func() error { _, err := options.List(text, "thing", declared); return err },
			func() error { _, err := options.One(text, "thing", declared); return err },
		} {
			if err := read(); err != nil && strings.ContainsAny(err.Error(), "\n\r") && !strings.ContainsAny(text, "\n\r") {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}
