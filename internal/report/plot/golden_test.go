package plot

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/quotabench/quotabench/internal/codes"
	"github.com/quotabench/quotabench/internal/kit/testenv"
	"github.com/quotabench/quotabench/internal/report/fixture"
	"github.com/quotabench/quotabench/results"
)

// tolerance is the mean difference of two reduced drawings, in levels of 255, above
// which they count as different. Another rasterizer changes edges, and these blur.
const tolerance = 1.5

// reduced is a drawing in grey, a sixteenth as wide and as high, from one pixel in 16.
func reduced(t *testing.T, p *Plot) *image.Gray {
	t.Helper()
	const factor, every = 16, 4
	img := fixture.Must[image.Image](t)(png.Decode(bytes.NewReader(fixture.Must[[]byte](t)(p.PNG()))))
	b := img.Bounds()
	out := image.NewGray(image.Rect(0, 0, b.Dx()/factor, b.Dy()/factor))
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			sum := 0
			for dy := 0; dy < factor; dy += every {
				for dx := 0; dx < factor; dx += every {
					sum += int(color.GrayModel.Convert(img.At(x*factor+dx, y*factor+dy)).(color.Gray).Y)
				}
			}
			out.SetGray(x, y, color.Gray{Y: uint8(sum * every * every / factor / factor)})
		}
	}
	return out
}

// difference is the mean of the pixels' differences; that of images of other sizes is
// the largest there is.
func difference(a, b *image.Gray) float64 {
	if a.Rect != b.Rect {
		return 255
	}
	sum := 0
	for i := range a.Pix {
		d := int(a.Pix[i]) - int(b.Pix[i])
		sum += max(d, -d)
	}
	return float64(sum) / float64(len(a.Pix))
}

func TestGoldenImages(t *testing.T) {
	f := fixture.New(6, fixture.Strategies...)
	finding := &results.Finding{
		Strategy: "check-then-set", Policy: "user-links", Property: "leak", Detail: "2 of 1 admitted", Token: "token",
		Columns: []results.Column{{Name: "A", Role: codes.RoleClient}, {Name: "B", Role: codes.RoleClient}},
		Steps: []results.Step{
			{Number: 1, Actor: "A", Role: codes.RoleClient, Event: codes.EventCommand, Store: "redis", Kind: "redis",
				Command: "GET k", Reply: "0", Limit: 1},
			{Number: 2, Actor: "B", Role: codes.RoleClient, Column: 1, Event: codes.EventCommand, Store: "redis",
				Kind: "redis", Command: "SET k 1", Reply: "OK", Outcome: "admitted", InUse: 1, Limit: 1},
		},
	}
	images := map[string]*image.Gray{}
	for name, draw := range map[string]func() (*Plot, error){
		"latency": func() (*Plot, error) { return Latency(f) }, "leakage": func() (*Plot, error) { return Leak(f) },
		"sequence": func() (*Plot, error) { return Sequence(finding) },
	} {
		got := reduced(t, fixture.Must[*Plot](t)(draw()))
		images[name] = got
		path := filepath.Join("testdata", name+".png")
		if testenv.Update() {
			var b bytes.Buffer
			if err := png.Encode(&b, got); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, ok := fixture.Must[image.Image](t)(png.Decode(bytes.NewReader(fixture.Must[[]byte](t)(os.ReadFile(path))))).(*image.Gray)
		if !ok {
			t.Fatalf("%s is not grey", path)
		}
		if d := difference(got, want); d > tolerance {
			t.Errorf("%s differs from %s by %.1f of 255 on average: look at it, and accept it with -update", name, path, d)
		}
	}
	// The tolerance tells drawings apart: one strategy less is no longer the same.
	if d := difference(images["leakage"],
		reduced(t, fixture.Must[*Plot](t)(Leak(fixture.New(6, fixture.Strategies[1:]...))))); d <= tolerance {
		t.Errorf("a strategy less makes a difference of %.2f, which passes", d)
	}
	moved := image.NewGray(images["latency"].Rect)
	copy(moved.Pix, images["latency"].Pix[2:])
	if d := difference(images["latency"], moved); d <= tolerance {
		t.Errorf("a drawing that is moved by 2 points differs by %.2f, which passes", d)
	}
}
