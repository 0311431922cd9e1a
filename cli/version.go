package cli

import (
	"cmp"
	"fmt"
	"runtime"

	build "github.com/quotabench/quotabench/internal/kit/version"
	"github.com/quotabench/quotabench/results"
)

// versionText is what --version prints.
func versionText() string {
	date := cmp.Or(build.Date(), "unknown")
	return fmt.Sprintf("quotabench %s\ncommitted  %s\nbuilt by   %s for %s/%s\nwrites     schema %d of results.json\n",
		build.Text(), date, runtime.Version(), runtime.GOOS, runtime.GOARCH, results.SchemaVersion)
}
