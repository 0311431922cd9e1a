package shortlist_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/explore"
	"github.com/quotabench/quotabench/internal/app/shortlist"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/stores/storetest"
	"github.com/quotabench/quotabench/internal/testkit"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/stores"
	"github.com/quotabench/quotabench/strategies"
	_ "github.com/quotabench/quotabench/strategies/all"
)

const storedFile = "searches.json"

// codeHash is a hash of what is searched and of what searches.
func codeHash(t *testing.T) string {
	t.Helper()
	sum := sha256.New()
	for _, root := range []string{"../../../strategies", "../../../explore"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			test := strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata")
			code := strings.HasSuffix(path, ".go") || strings.HasSuffix(path, ".lua") || strings.HasSuffix(path, ".sql")
			if test || !code {
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum.Write([]byte(path))
			sum.Write(text)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// TestStoredIsOfThisCode: whoever changes a strategy or the search makes the stored searches again.
func TestStoredIsOfThisCode(t *testing.T) {
	if testenv.Update() {
		return
	}
	if read(t).Code != codeHash(t) {
		t.Errorf("%s is of other code: QUOTABENCH_LONG=1 go test ./internal/app/shortlist -run TestStored -update makes "+
			"it again", storedFile)
	}
}

// TestStored makes stored searches again: all of them with -update, and otherwise those of every
// fourth strategy. Which ones these are differs with the code.
func TestStored(t *testing.T) {
	testenv.Long(t)
	postgres := storetest.Postgres(t)
	usual := testkit.Policy(t, shortlist.DefaultPolicy)
	all, err := strategies.Parse("all")
	if err != nil {
		t.Fatal(err)
	}
	code := codeHash(t)
	searches := map[string]map[string][]shortlist.Found{}
	for i, sel := range all {
		if sel.Form == strategies.Baseline || sel.BuiltIn() != nil || !testenv.Update() && !chosen(i, code) {
			continue
		}
		byKind := map[string][]shortlist.Found{}
		for _, kind := range sel.Kinds {
			policy := usual.As(kind)
			if sel.ServesPolicy(&policy) == nil {
				byKind[kind.String()] = searchAll(t.Context(), sel, policy, postgres)
			}
		}
		searches[sel.String()] = byKind
	}
	if testenv.Update() {
		write(t, code, searches)
		return
	}
	stored := read(t)
	for name, byKind := range searches {
		was := text(t, stored.Searches[name])
		is := text(t, byKind)
		if was != is {
			t.Errorf("%s: stored is\n%s\nand a search now finds\n%s", name, was, is)
		}
	}
}

// chosen reports whether the searches of the i-th strategy are made again for code with that hash.
func chosen(i int, code string) bool {
	const every = 4
	first, err := strconv.ParseUint(code[:2], 16, 8)
	if err != nil {
		panic(err)
	}
	return i%every == int(first)%every
}

func text(t *testing.T, byKind map[string][]shortlist.Found) string {
	t.Helper()
	out, err := json.Marshal(byKind)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// write stores searches, a line for each strategy.
func write(t *testing.T, code string, searches map[string]map[string][]shortlist.Found) {
	t.Helper()
	made, err := json.Marshal(map[string]any{"code": code, "searches": searches})
	if err != nil {
		t.Fatal(err)
	}
	made = bytes.ReplaceAll(made, []byte(`]},"`), []byte("]},\n\""))
	if err := os.WriteFile(storedFile, append(made, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// storedSearches is what the file holds.
type storedSearches struct {
	Code     string
	Searches map[string]map[string][]shortlist.Found
}

func read(t *testing.T) (stored storedSearches) {
	t.Helper()
	text, err := os.ReadFile(storedFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	return stored
}

// searchAll makes the searches of a strategy under a policy that a question may ask for.
func searchAll(ctx context.Context, sel strategies.Selection, policy quota.Policy,
	postgres stores.Store) []shortlist.Found {
	var all []shortlist.Found
	for _, faults := range [][]quota.Fault{nil, {quota.FaultClock}, {quota.FaultCrash}, {quota.FaultOutage}} {
		if len(faults) > 0 && explore.OnPostgres(sel) {
			continue
		}
		if policy.Window.Kind == quota.Standing && len(faults) > 0 && faults[0] == quota.FaultClock {
			continue
		}
		all = append(all, shortlist.Search(ctx, sel, explore.Config{
			Policy: policy, Instances: 2, Seed: 1, Faults: faults, Resources: explore.Resources{Postgres: postgres},
		}))
	}
	return all
}

func TestMain(m *testing.M) { storetest.Main(m) }
