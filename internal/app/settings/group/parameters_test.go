package group_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/quotabench/quotabench/harness/measure"
	"github.com/quotabench/quotabench/internal/app/settings/group"
)

// TestVary: each parameter changes the configuration, and what its flag refuses is refused.
func TestVary(t *testing.T) {
	texts := map[string]string{"life": "7m", "duration": "7m", "decision-timeout": "7s", "cold": "true"}
	for _, name := range group.Parameters() {
		var config measure.Config
		text, ok := texts[name]
		if !ok {
			text = "7"
		}
		known, err := group.Vary(group.Run, &config, name, text)
		if !known || err != nil || reflect.ValueOf(config).IsZero() {
			t.Errorf("%s=%s: known %t, %v, %+v", name, text, known, err, config)
		}
		if known, err := group.Vary(group.Run, &config, name, "-7"); !known || err == nil {
			t.Errorf("%s takes -7", name)
		}
	}
	var config measure.Config
	if known, err := group.Vary(group.Sim, &config, "pool", "7"); known || err != nil {
		t.Errorf("a simulation has a pool: %v", err)
	}
	if !slices.Contains(group.Parameters(), "life") {
		t.Error("there is no life")
	}
}

// TestAdopt takes what is wanted of a configuration, whatever the bounds of the settings are.
func TestAdopt(t *testing.T) {
	s := group.New(group.Sim)
	s.Life = time.Minute
	var config measure.Config
	config.Life = time.Hour
	config.Policy.Limit = 9
	config.Workers = -1
	s.Adopt(&config, func(name string) bool { return name != "life" })
	if s.Life != time.Minute || s.Config.Policy.Limit != 9 || s.Workers != -1 {
		t.Errorf("life %v, limit %d, %d workers", s.Life, s.Config.Policy.Limit, s.Workers)
	}
}
