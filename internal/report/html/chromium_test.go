package html_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotabench/quotabench/internal/kit/testenv"
)

// browser is a Chromium without a window, driven by its DevTools protocol over a pair
// of pipes.
type browser struct {
	t       *testing.T
	in      *os.File
	out     *bufio.Reader
	last    int
	session string
	// complaints are errors of the page's script, of its console, and loads that were
	// refused.
	complaints []string
}

// message is a command, its answer, or an event.
type message struct {
	ID        int                       `json:"id,omitempty"`
	Session   string                    `json:"sessionId,omitempty"`
	Method    string                    `json:"method,omitempty"`
	Params    any                       `json:"params,omitempty"`
	Result    json.RawMessage           `json:"result,omitempty"`
	Error     *struct{ Message string } `json:"error,omitempty"`
	RawParams json.RawMessage           `json:"-"`
}

// startBrowser opens an empty page. A machine without Chromium skips the test.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	path := testenv.Program(t, "browser")
	toBrowser, in := pipe(t)
	out, fromBrowser := pipe(t)
	profile := t.TempDir()
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--disable-background-networking", "--disable-extensions", "--no-first-run",
		"--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir="+filepath.Join(profile, "profile"), "about:blank")
	cmd.ExtraFiles = []*os.File{toBrowser, fromBrowser}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = toBrowser.Close()
	_ = fromBrowser.Close()
	b := &browser{t: t, in: in, out: bufio.NewReaderSize(out, 1<<20)}
	t.Cleanup(func() {
		b.session = ""
		_ = b.send("Browser.close", nil)
		_ = in.Close()
		_ = cmd.Wait() // it ends since it was told to, or since its pipe is closed
	})
	var targets struct {
		TargetInfos []struct{ TargetID, Type string }
	}
	b.call("Target.getTargets", nil, &targets)
	target := ""
	for _, x := range targets.TargetInfos {
		if x.Type == "page" {
			target = x.TargetID
		}
	}
	if target == "" {
		var created struct{ TargetID string }
		b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &created)
		target = created.TargetID
	}
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

func (b *browser) send(method string, params any) error {
	b.last++
	data, err := json.Marshal(message{ID: b.last, Session: b.session, Method: method, Params: params})
	if err != nil {
		return err
	}
	_, err = b.in.Write(append(data, 0))
	return err
}

// read returns the next message.
func (b *browser) read() message {
	b.t.Helper()
	data, err := b.out.ReadBytes(0)
	if err != nil {
		b.t.Fatalf("Chromium: %v", err)
	}
	var raw struct {
		message
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(data[:len(data)-1], &raw); err != nil {
		b.t.Fatal(err)
	}
	m := raw.message
	m.RawParams = raw.Params
	switch m.Method {
	case "Runtime.exceptionThrown", "Log.entryAdded":
		b.complaints = append(b.complaints, m.Method+": "+string(m.RawParams))
	case "Runtime.consoleAPICalled":
		var p struct{ Type string }
		if err := json.Unmarshal(m.RawParams, &p); err != nil || p.Type == "error" || p.Type == "warning" ||
			p.Type == "assert" {
			b.complaints = append(b.complaints, m.Method+": "+string(m.RawParams))
		}
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		if err := json.Unmarshal(m.RawParams, &p); err != nil || !strings.HasPrefix(p.Request.URL, "file:") {
			b.complaints = append(b.complaints, "the page asked for "+p.Request.URL)
		}
	}
	return m
}

// call sends a command and waits for its answer.
func (b *browser) call(method string, params, into any) {
	b.t.Helper()
	if err := b.send(method, params); err != nil {
		b.t.Fatal(err)
	}
	for id := b.last; ; {
		m := b.read()
		if m.ID != id {
			continue
		}
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error.Message)
		}
		if into != nil {
			if err := json.Unmarshal(m.Result, into); err != nil {
				b.t.Fatal(err)
			}
		}
		return
	}
}

// open loads a page and waits until it has loaded.
func (b *browser) open(page []byte) {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "report.html")
	if err := os.WriteFile(path, page, 0o600); err != nil {
		b.t.Fatal(err)
	}
	if err := b.send("Page.navigate", map[string]any{"url": "file://" + path}); err != nil {
		b.t.Fatal(err)
	}
	for b.read().Method != "Page.loadEventFired" {
	}
}

// window sets the size in pixels, and light or dark.
func (b *browser) window(width, height int, scheme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}, nil)
	b.call("Emulation.setEmulatedMedia",
		map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// eval runs a script in the page and decodes its value.
func (b *browser) eval(script string, into any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	b.call("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true, "awaitPromise": true}, &r)
	if x := r.ExceptionDetails; x != nil {
		b.t.Fatalf("%s: %s %s", script, x.Text, x.Exception.Description)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(r.Result.Value, into); err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
}

// press presses a key as a user does.
func (b *browser) press(key, text string) {
	b.t.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13, " ": 32}
	b.call("Input.dispatchKeyEvent",
		map[string]any{"type": "keyDown", "key": key, "code": key, "text": text, "windowsVirtualKeyCode": codes[key]}, nil)
	b.call("Input.dispatchKeyEvent",
		map[string]any{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": codes[key]}, nil)
}

// shoot writes what is seen to a PNG file, for people to look at.
func (b *browser) shoot(path string) {
	b.t.Helper()
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err := errors.Join(err, os.WriteFile(path, data, 0o600)); err != nil {
		b.t.Fatal(fmt.Errorf("screenshot: %w", err))
	}
}
