package quota

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestOptionAccepts(t *testing.T) {
	odd := Option{Name: "o", Type: "int", Check: func(v string) error {
		if v == "2" {
			return errors.New("2 is even")
		}
		return nil
	}}
	for _, c := range []struct {
		option     Option
		value, err string
	}{
		{Option{}, "anything", ""},
		{Option{Values: []string{"a", "b"}}, "a", ""},
		{Option{Values: []string{"a", "b"}}, "c", `"c" is none of a, b`},
		{Option{Type: "int"}, "-5", ""},
		{Option{Type: "int"}, "5.5", `"5.5" is not a valid int`},
		{Option{Type: "int", Min: "1"}, "0", "0 is not 1 or more"},
		{Option{Type: "int", Min: "1", Max: "9"}, "9", ""},
		{Option{Type: "int", Max: "9"}, "10", "10 is not at most 9"},
		{Option{Type: "float", Min: "0", Max: "1"}, "0.5", ""},
		{Option{Type: "float", Min: "0", Max: "1"}, "1.5", "1.5 is not from 0 to 1"},
		{Option{Type: "float"}, "NaN", "not a valid float"},
		{Option{Type: "float"}, "Inf", "not a valid float"},
		{Option{Type: "duration"}, "5m", ""},
		{Option{Type: "duration"}, "5", `"5" is not a valid duration`},
		{Option{Type: "duration", Min: "0s", Max: "1h"}, "2h", "2h is not from 0s to 1h"},
		{Option{Type: "duration", Min: "0s"}, "-1ns", "-1ns is not 0s or more"},
		{Option{Type: "bool"}, "true", ""},
		{Option{Type: "bool"}, "maybe", `"maybe" is not a valid bool`},
		{Option{Type: "file"}, "", "needs a name"},
		{odd, "3", ""},
		{odd, "2", "2 is even"},
	} {
		err := c.option.Accepts(c.value)
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%+v, %q: %v, want %q", c.option, c.value, err, c.err)
		}
	}
}

func TestOptionValidate(t *testing.T) {
	if err := (Option{Name: "o", Type: "int", Default: "3", Min: "1", Max: "9"}).Validate(); err != nil {
		t.Error(err)
	}
	if err := (Option{Name: "o", Type: "file", Required: true}).Validate(); err != nil {
		t.Error(err)
	}
	for what, o := range map[string]Option{
		"no name":           {},
		"an equals sign":    {Name: "a=b"},
		"unknown type":      {Name: "o", Type: "number"},
		"default no number": {Name: "o", Type: "int", Default: "x"},
		"default too large": {Name: "o", Type: "int", Default: "3", Max: "2"},
		"bound no number":   {Name: "o", Type: "int", Default: "3", Max: "many"},
		"bound of a text":   {Name: "o", Max: "2"},
		"needless default":  {Name: "o", Required: true, Default: "x"},
	} {
		if o.Validate() == nil {
			t.Errorf("%s: %+v is accepted", what, o)
		}
	}
}

func TestComplete(t *testing.T) {
	declared := []Option{
		{Name: "n", Type: "int", Default: "3"}, {Name: "x", Type: "float", Default: "0.5"},
		{Name: "wait", Type: "duration", Default: "2ms"}, {Name: "on", Type: "bool", Default: "true"},
		{Name: "file", Type: "file", Required: true},
	}
	o, err := Complete(declared, Options{"n": "7", "file": "f"})
	if err != nil || o.Int("n") != 7 || o.Float("x") != 0.5 || o.Duration("wait") != 2*time.Millisecond || !o.Bool("on") ||
		o["file"] != "f" {
		t.Errorf("%v, %v", o, err)
	}
	for _, c := range []struct {
		given Options
		want  string
	}{
		{Options{"n": "7"}, "option file is required: give the name of a file"},
		{Options{"file": "f", "m": "7"}, `no option "m": it has n, x, wait, on, file`},
		{Options{"file": "f", "n": "x"}, `option n: "x" is not a valid int: give a whole number`},
	} {
		if _, err := Complete(declared, c.given); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.given, err, c.want)
		}
	}
	if _, err := Complete(nil, Options{"m": "7"}); err == nil || !strings.Contains(err.Error(), "it has none") {
		t.Errorf("without options: %v", err)
	}
}

func TestWanted(t *testing.T) {
	for _, c := range []struct {
		option Option
		want   string
	}{
		{Option{}, "give text"},
		{Option{Values: []string{"a", "b"}}, "give a or b"},
		{Option{Type: "int", Min: "1"}, "give a whole number, 1 or more"},
		{Option{Type: "float", Min: "0", Max: "1"}, "give a number from 0 to 1"},
		{Option{Type: "duration"}, "give a time with its unit, e.g. 400ms or 1m30s"},
		{Option{Type: "duration", Min: "0s", Max: "24h"}, "give a time from 0s to 24h with its unit, e.g. 400ms or 1m30s"},
		{Option{Type: "bool"}, "give true or false"},
	} {
		if got := c.option.Wanted(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.option, got, c.want)
		}
	}
}
