package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/app/session"
	"github.com/quotabench/quotabench/internal/app/settings"
	"github.com/quotabench/quotabench/internal/app/settings/group"
	"github.com/quotabench/quotabench/internal/host/server"
	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/report/document"
	"github.com/quotabench/quotabench/internal/report/text/layout"
	"github.com/quotabench/quotabench/stores"
)

// cleaning is what doctor --clean is told.
type cleaning struct {
	*group.Settings
	clean        bool
	yes, unknown bool
	asJSON       bool
}

func newCleaning() *cleaning { return &cleaning{Settings: group.New(group.Own)} }

func (c *cleaning) register(cmd *cobra.Command) {
	c.Set = settings.New(cmd, []settings.Setting{
		jsonFlag(&c.asJSON, "write JSON"),
		{Name: "clean", Title: settings.Stores, Value: settings.Bool(&c.clean)},
		{Name: "yes", Title: settings.Stores, Value: settings.Bool(&c.yes)},
		{Name: "unknown", Title: settings.Stores, Value: settings.Bool(&c.unknown)},
	}, c.Stores())
}

// checkAsked refuses the flags of --clean if that is not given.
func (c *cleaning) checkAsked() error {
	if c.clean {
		return nil
	}
	for _, setting := range c.All() {
		if setting.Name != "json" && c.Given(setting.Name) {
			return c.Wrong(setting.Name, errors.New("it is for --clean: give both, or neither"))
		}
	}
	return nil
}

// ownServers are those of the user's own that are named.
func ownServers(s *group.Settings) ([]stores.Spec, error) {
	specs, err := s.Specs()
	for i := range specs {
		spec := &specs[i]
		if !strings.Contains(spec.From, "://") {
			return nil, usagef("store %s: give the URL of a server of yours: what is started here is removed with it", spec.Name)
		}
		spec.Options.KeepLeftovers = true // they are listed first
	}
	return specs, err
}

// held is a thing that runs keep: a holding in a store, or a directory.
type held struct {
	Where string              `json:"where"`
	What  string              `json:"what"`
	Keys  int64               `json:"keys"`
	State stores.HoldingState `json:"state"`
	Owner string              `json:"owner"`

	keeper  stores.Keeper // nil for a directory
	holding stores.Holding
}

func (c *cleaning) run(cmd *cobra.Command) (err error) {
	ctx := cmd.Context()
	if c.unknown && !c.yes {
		return usagef("--unknown says what --yes removes: give both, or neither to list")
	}
	specs, err := ownServers(c.Settings)
	if err != nil {
		return err
	}
	dirs := server.Leftovers("")
	set, err := stores.OpenSet(ctx, specs)
	if err != nil {
		return session.InterruptedOr(ctx, err, exit.Usage)
	}
	defer func() { err = cmp.Or(err, fail(exit.Failed, set.Close())) }()
	all := []held{}
	for _, name := range set.Names() {
		store, _ := set.Get(name)
		k, ok := store.(stores.Keeper)
		if !ok {
			continue
		}
		found, err := k.Holdings(ctx, true)
		if err != nil {
			return session.InterruptedOr(ctx, err, exit.Failed)
		}
		for _, holding := range found {
			all = append(all, held{name, holding.Name, holding.Keys, holding.State, holding.Owner, k, holding})
		}
	}
	shown := slices.Clone(all)
	for _, text := range dirs {
		shown = append(shown, held{Where: "directory", What: text, State: stores.HeldDead, Owner: "a process that ended"})
	}
	if err := show(cmd, c.asJSON, shown, heldLines); err != nil {
		return fail(exit.Failed, err)
	}
	return c.remove(ctx, cmd.ErrOrStderr(), all, dirs)
}

// heldLines has a line for each thing that runs keep.
func heldLines(page layout.Page, all []held) []string {
	if len(all) == 0 {
		return []string{"runs have left nothing"}
	}
	grid := document.Table{Columns: []document.Column{
		{Title: "where", Left: true}, {Title: "what", Left: true, Flexible: true}, {Title: "keys"},
		{Title: "state", Left: true},
		{Title: "whose", Left: true, Flexible: true},
	}}
	for _, held := range all {
		keys := ""
		if held.keeper != nil && stores.ClassOf(held.keeper.Driver()) != stores.ClassSQL { // whose rows are not counted
			keys = format.Count(held.Keys)
		}
		grid.Add(held.Where, held.What, keys, string(held.State), held.Owner)
	}
	return page.Table(&grid)
}

// remove removes what is left, or says that it would.
func (c *cleaning) remove(ctx context.Context, w io.Writer, all []held, dirs []string) error {
	unknown := 0
	all = slices.DeleteFunc(all, func(h held) bool {
		if h.State == stores.HeldUnknown && !c.unknown {
			unknown++
		}
		return h.State == stores.HeldLive || h.State == stores.HeldUnknown && !c.unknown
	})
	if !c.yes {
		if len(all)+len(dirs)+unknown > 0 {
			fmt.Fprintln(w, "nothing was removed: give --yes to remove what is left")
		}
		return nil
	}
	removed, discarding := discardAll(ctx, all)
	server.RemoveLeftovers(ctx, "")
	removedDirs, left := goneOf(dirs)
	removed = append(removed, removedDirs...)
	if removed == nil {
		removed = []string{"nothing"}
	}
	fmt.Fprintf(w, "removed: %s\n", strings.Join(removed, ", "))
	if unknown > 0 {
		fmt.Fprintf(w, "%s without a lease stayed: --unknown removes that, too\n", format.Number(unknown, "thing"))
	}
	if err := errors.Join(discarding, left); err != nil {
		return session.InterruptedOr(ctx, err, exit.Failed)
	}
	return nil
}

// discardAll removes what stores hold, and says how much of each kind of store.
func discardAll(ctx context.Context, all []held) (removed []string, err error) {
	var errs []error
	counts := map[string]int64{}
	for _, held := range all {
		n, err := held.keeper.Discard(ctx, held.holding)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", held.Where, err))
		}
		counts[held.keeper.Driver()] += n
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[name]; n > 0 {
			removed = append(removed, stores.Amount(name, n))
		}
	}
	return removed, errors.Join(errs...)
}

// goneOf says how many of the directories are gone. The error says how many are not.
func goneOf(dirs []string) (removed []string, err error) {
	gone := 0
	for _, dir := range dirs {
		if _, err := os.Lstat(dir); err != nil {
			gone++
		}
	}
	directories := func(n int) string { return format.Plural(int64(n), "directory", "directories") }
	if gone > 0 {
		removed = append(removed, directories(gone))
	}
	if gone < len(dirs) {
		err = fmt.Errorf("%s could not be removed", directories(len(dirs)-gone))
	}
	return removed, err
}
