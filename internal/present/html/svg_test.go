package html

import (
	"strings"
	"testing"
)

func TestInline(t *testing.T) {
	const hostile = `<?xml version="1.0"?><!-- a comment --><svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="90pt" viewBox="0 0 9 9" onload="a()">
<title id="t">A &lt;b&gt; &quot;title&quot;</title><desc>what it shows</desc>
<script>alert(1)</script><style>body{display:none}</style><foreignObject><img src="x" onerror="alert(1)"/></foreignObject><image href="http://example.com/x.png"/>
<a href="javascript:alert(1)"><text>gone</text></a>
<defs><clipPath id="c"><rect x="1" y="2" width="3" height="4"/></clipPath></defs>
<g clip-path="url(#c)" style="fill:url(http://example.com/y);stroke:url('#c')" onclick="alert(1)"><title>kept</title><text x="1" aria-labelledby="t c" font-size="9">a &lt;script&gt; b</text><use xlink:href="#c"/><use href="http://example.com/z"/></g></svg>`
	in, err := inline([]byte(hostile), "p1-")
	if err != nil {
		t.Fatal(err)
	}
	if in.Title != `A <b> "title"` || in.Desc != "what it shows" || in.Width != 120 {
		t.Errorf("title %q, description %q, width %g", in.Title, in.Desc, in.Width)
	}
	const want = `<svg role="img" aria-label="A &lt;b&gt; &#34;title&#34;" viewBox="0 0 9 9"><defs><clipPath id="p1-c"><rect x="1" y="2" width="3" height="4"></rect></clipPath></defs>` +
		`<g clip-path="url(#p1-c)" style="fill:none;stroke:url(#p1-c)"><title>kept</title><text x="1" aria-labelledby="p1-t p1-c" font-size="9">a &lt;script&gt; b</text><use href="#p1-c"></use><use></use></g></svg>`
	if string(in.SVG) != want {
		t.Errorf("got\n%s\nwant\n%s", in.SVG, want)
	}
	for name, bad := range map[string]string{"no SVG": "<p>text</p>", "cut": "<svg><g>", "nothing": "", "crossed": "<svg><g></svg></g>"} {
		if in, err := inline([]byte(bad), ""); err == nil {
			t.Errorf("%s became %s", name, in.SVG)
		}
	}
	if in, err := inline([]byte("<svg><text>a\x1b[31mb\ufffe\xff</text></svg>"), ""); err != nil || strings.ContainsAny(string(in.SVG), "\x1b\ufffe") {
		t.Errorf("control characters: %q, %v", in.SVG, err)
	}
}
