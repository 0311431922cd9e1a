package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// TestPasswordInEverySetting plants a URL with a password in each flag and each key of a configuration, and reads
// whatever is said and written.
func TestPasswordInEverySetting(t *testing.T) {
	testenv.Sequential(t)
	const secret = "S3cr3tOk"
	place := newPlace(t, nonsenseFiles())
	all := knobs()
	for _, k := range all {
		for _, url := range []string{"redis://user:" + secret + "@127.0.0.1:1/0", "a=redis://:" + secret + "@127.0.0.1:1",
			"http://127.0.0.1:1/?token=" + secret} {
			args := k.args(url, true)
			if k.flag && k.name == "out" { // the name of a directory is no secret
				continue
			}
			o := call(t.Context(), args...)
			if strings.Contains(o.stdout+o.stderr, secret) {
				t.Errorf("%s: %q says %s", k, args, o.stdout+o.stderr)
			}
		}
	}
	for _, name := range place.files() {
		for _, root := range []string{place.dir, place.temp} {
			data, err := os.ReadFile(filepath.Join(root, name))
			if err == nil && filepath.Base(name) != "nonsense.yaml" && strings.Contains(string(data), secret) {
				t.Errorf("%s has the password", name)
			}
		}
	}
	if len(all) < 150 {
		t.Errorf("%d settings", len(all))
	}
}
