package html_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/results/render"
)

// TestBrowser drives the page of a run of all strategies as a reader does. With
// QUOTABENCH_SCREENSHOTS it leaves pictures in that directory.
func TestBrowser(t *testing.T) {
	testenv.Long(t)
	page := fixture.Must[[]byte](t)(runAll())
	b := startBrowser(t)
	b.window(1280, 900, "light")
	b.open(page)
	t.Run("sort", func(t *testing.T) { sorts(t, b) })
	t.Run("filter", func(t *testing.T) { filters(t, b) })
	t.Run("link", func(t *testing.T) { links(t, b) })
	t.Run("layout", func(t *testing.T) { fits(t, b) })
	t.Run("print", func(t *testing.T) { prints(t, b) })
	t.Run("steps", func(t *testing.T) { stepsThrough(t, b) })
	b.window(390, 844, "light")
	for name, page := range hostile(t) {
		b.open(page)
		var found []string
		b.eval(`[...document.querySelectorAll("*")].filter((e) => e.localName === "img" || [...e.attributes].some((a) => a.name.startsWith("on"))).map((e) => e.outerHTML)`, &found)
		var scripts int
		b.eval(`document.scripts.length`, &scripts)
		if len(found) > 0 || scripts != 1 {
			t.Errorf("%s: %d scripts, and %q", name, scripts, found)
		}
		b.eval(`document.getElementById("open").click()`, nil)
		if width := overflow(b); width > 390 {
			t.Errorf("%s: the page is %d wide on a phone", name, width)
		}
	}
	if len(b.complaints) > 0 {
		t.Errorf("the browser complains: %.2000q", b.complaints)
	}
}

// stepsThrough goes through the schedules of a search by buttons and by keys, in a wide window and on a phone.
func stepsThrough(t *testing.T, b *browser) {
	explored := full(t).Exploration
	page := fixture.Must[[]byte](t)(render.HTML([]*render.Bundle{{Exploration: explored}}))
	const read = `[...document.querySelectorAll(".schedule")].filter((s) => s.querySelector(".sequence")).map((s) =>
		[s.querySelector("output").textContent, s.querySelector("svg").style.clipPath === "" ? "whole" : "cut",
		[...s.querySelectorAll(".steps tbody tr")].filter((r) => !r.hidden).length].join(" "))`
	const schedule = `document.querySelectorAll(".schedule")[0]`
	click := func(to string) string { return schedule + `.querySelector("button[data-to=` + to + `]").click()` }
	press := func(key string) string {
		return schedule + `.dispatchEvent(new KeyboardEvent("keydown", {key: "` + key + `"}))`
	}
	for _, width := range []int{1280, 390} {
		b.window(width, 900, "light")
		b.open(page)
		for _, act := range []struct{ do, want string }{
			{"", "all steps whole 2"}, {click("on"), "step 1 of 2 cut 1"}, {click("on"), "step 2 of 2 cut 2"},
			{click("back"), "step 1 of 2 cut 1"}, {click("all"), "all steps whole 2"},
			{press("ArrowLeft"), "step 2 of 2 cut 2"}, {press("Home"), "step 1 of 2 cut 1"},
			{press("ArrowRight"), "step 2 of 2 cut 2"}, {press("Escape"), "all steps whole 2"},
		} {
			if act.do != "" {
				b.eval(act.do, nil)
			}
			var got []string
			b.eval(read, &got)
			if len(got) == 0 || got[0] != act.want {
				t.Fatalf("%d wide: after %s: %q, want %q first", width, act.do, got, act.want)
			}
		}
		var chart bool
		b.eval(`document.querySelector(".sequence").checkVisibility()`, &chart)
		if wide := width > 720; chart != wide {
			t.Errorf("%d wide: the chart is shown: %t", width, chart)
		}
		if w := overflow(b); w > width {
			t.Errorf("the page is %d wide in a window of %d", w, width)
		}
	}
	b.window(1280, 900, "light")
}

// overflow is how wide the page is, whatever the window.
func overflow(b *browser) (width int) {
	b.eval(`document.documentElement.scrollWidth`, &width)
	return width
}

// column reads the keys of a column in the order of the rows that are shown.
func column(b *browser, title string) (out []string) {
	b.eval(fmt.Sprintf(`(() => { const t = document.querySelector("table.decision");
		const at = [...t.tHead.rows[0].cells].findIndex((h) => h.textContent === %q);
		return [...t.tBodies[0].rows].filter((r) => r.checkVisibility()).map((r) => r.cells[at].dataset.v) })()`, title), &out)
	return out
}

// ordered reports whether keys are in order, with the empty ones last.
func ordered(keys []string, descending bool) bool {
	var numbers []float64
	for i, k := range keys {
		if k == "" {
			return !slices.ContainsFunc(keys[i:], func(k string) bool { return k != "" }) && inOrder(numbers, descending)
		}
		var x float64
		if _, err := fmt.Sscan(k, &x); err != nil {
			return false
		}
		numbers = append(numbers, x)
	}
	return inOrder(numbers, descending)
}

func inOrder(numbers []float64, descending bool) bool {
	if descending {
		slices.Reverse(numbers)
	}
	return len(numbers) > 1 && numbers[0] < numbers[len(numbers)-1] && slices.IsSorted(numbers)
}

func head(title string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("table.decision th")].find((h) => h.textContent === %q)`, title)
}

// sorts by a click, and by keys.
func sorts(t *testing.T, b *browser) {
	before := column(b, "p99")
	if ordered(before, false) || len(before) < 30 {
		t.Fatalf("%d rows are in order before anything was sorted: %q", len(before), before)
	}
	b.eval(head("p99")+`.querySelector("button").click()`, nil)
	if got := column(b, "p99"); !ordered(got, false) || len(got) != len(before) {
		t.Errorf("after a click: %q", got)
	}
	b.eval(head("p99")+`.querySelector("button").focus()`, nil)
	b.press("Enter", "\r")
	if got := column(b, "p99"); !ordered(got, true) {
		t.Errorf("after Enter: %q", got)
	}
	b.press("Tab", "") // past the next head, whose figures are not measurable in this record
	b.press("Tab", "")
	b.press(" ", " ")
	if got := column(b, "commands"); !ordered(got, false) {
		t.Errorf("after Tab and space: %q", got)
	}
	var state []string
	b.eval(`[...document.querySelectorAll("table.decision th[aria-sort]")].filter((h) => h.ariaSort !== "none").map((h) => h.textContent + " " + h.ariaSort)`, &state)
	if !slices.Equal(state, []string{"commands ascending"}) {
		t.Errorf("sorted by %q", state)
	}
	b.eval(`{ const s = document.getElementById("sort"); s.selectedIndex = 1; s.dispatchEvent(new Event("change")) }`, nil)
	if got := column(b, "group"); !ordered(got, false) {
		t.Errorf("by the list: %q", got)
	}
}

// filters by words and by group.
func filters(t *testing.T, b *browser) {
	all := column(b, "strategy")
	typed := func(text string) []string {
		b.eval(fmt.Sprintf(`{ const f = document.getElementById("filter"); f.value = %q; f.dispatchEvent(new Event("input")) }`, text), nil)
		return column(b, "strategy")
	}
	if got := typed("LUA hardened"); !slices.Equal(got, []string{"lua-reserve-hardened"}) {
		t.Errorf("two words: %q", got)
	}
	if got := typed("no such strategy"); len(got) != 0 {
		t.Errorf("shown: %q", got)
	}
	var status string
	b.eval(`document.getElementById("shown").textContent`, &status)
	if want := fmt.Sprintf("0 of %d rows", len(all)); status != want {
		t.Errorf("%q, want %q", status, want)
	}
	if got := typed(""); len(got) != len(all) {
		t.Errorf("%d rows after the filter was emptied, of %d", len(got), len(all))
	}
	box := func() { b.eval(`document.querySelector('.tools input[value="enforces"]').click()`, nil) }
	box()
	if got := column(b, "group"); len(got) == 0 || len(got) == len(all) || slices.Contains(got, "0") {
		t.Errorf("without those that enforce: %q", got)
	}
	box()
}

// links to a strategy open its panel.
func links(t *testing.T, b *browser) {
	var open []bool
	b.eval(`(async () => { const d = document.getElementById("s-three-tier"), before = d.open;
		document.querySelector('.decision a[href="#s-three-tier"]').click();
		await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
		return [before, d.open] })()`, &open)
	if !slices.Equal(open, []bool{false, true}) {
		t.Errorf("open before and after: %v", open)
	}
}

// fits: nothing is wider than the window, and nothing is cut off, at any width in light
// and dark.
func fits(t *testing.T, b *browser) {
	grounds := map[string]bool{}
	for _, w := range []struct{ width, height int }{{1280, 900}, {390, 844}} {
		for _, scheme := range []string{"light", "dark"} {
			b.window(w.width, w.height, scheme)
			b.eval(`document.getElementById("open").click()`, nil)
			var page struct {
				Ground string
				Out    []string
			}
			b.eval(`({ ground: getComputedStyle(document.body).backgroundColor,
				out: [...document.querySelectorAll("main *")].filter((e) => e.checkVisibility() && !e.closest(".scroll, figcaption, legend") && e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 80)) })`, &page)
			if width := overflow(b); width > w.width || len(page.Out) > 0 {
				t.Errorf("%s at %d: the page is %d wide, and out of sight is %q", scheme, w.width, width, page.Out)
			}
			var scrolls bool
			b.eval(`(() => { const d = document.querySelector(".decide"); return d.scrollWidth > d.clientWidth })()`, &scrolls)
			if scrolls && w.width > 1000 {
				t.Errorf("%s: the decision table needs more than %d", scheme, w.width)
			}
			grounds[page.Ground] = true
			if dir := os.Getenv("QUOTABENCH_SCREENSHOTS"); dir != "" {
				b.eval(`document.getElementById("close").click()`, nil)
				for _, part := range []string{"answer", "run", "decide", "plots", "strategies"} {
					b.eval(fmt.Sprintf(`document.getElementById(%q).scrollIntoView({behavior: "instant"})`, part), nil)
					b.shoot(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", part, w.width, scheme)))
				}
			}
		}
	}
	if len(grounds) != 2 {
		t.Errorf("light and dark have the grounds %v", grounds)
	}
}

// prints with all panels open, and closes them again.
func prints(t *testing.T, b *browser) {
	b.eval(`document.getElementById("close").click()`, nil)
	var shut int
	b.eval(`(() => { dispatchEvent(new Event("beforeprint")); const n = document.querySelectorAll("details.panel:not([open])").length;
		dispatchEvent(new Event("afterprint")); return n })()`, &shut)
	var open int
	b.eval(`document.querySelectorAll("details.panel[open]").length`, &open)
	if shut != 0 || open != 0 {
		t.Errorf("%d panels shut in print, %d open after it", shut, open)
	}
}
