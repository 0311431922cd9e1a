// Package scaffold writes a module with a limiter, its test and its files for CI, for a user to begin with.
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/quotabench/quotabench/internal/kit/version"
)

//go:embed all:files
var files embed.FS

// Source is where the module has quotabench from: a published version, or a folder with its sources.
type Source struct{ Version, Replace string }

// Ref is what the action is taken from: the tag of the version, or main if it is that of a commit.
func (s Source) Ref() string {
	if s.Version == "" || strings.Count(s.Version, "-") > 1 {
		return "main"
	}
	return s.Version
}

// From is the source of a module in dir: the version that this program is, or a clone if one is given.
func From(clone, dir string) (Source, error) {
	if clone == "" {
		if text := version.Published(); text != "" {
			return Source{Version: text}, nil
		}
		return Source{}, errors.New("this program is no published version: give the clone that it was built from, " +
			"--replace DIRECTORY")
	}
	data, _ := os.ReadFile(filepath.Join(clone, "go.mod")) // of what cannot be read, the same is said
	if !bytes.HasPrefix(data, []byte("module "+version.Module+"\n")) {
		return Source{}, fmt.Errorf("--replace: %s is no clone of quotabench: give the directory with its go.mod", clone)
	}
	dir, bad := filepath.Abs(dir)
	clone, err := filepath.Abs(clone)
	if near, err := filepath.Rel(dir, clone); err == nil { // they may lie on two drives
		clone = near
	}
	return Source{Replace: filepath.ToSlash(clone)}, errors.Join(bad, err)
}

// Write makes the module in dir, which must be empty or not exist, and returns the names of its files.
func Write(dir string, from Source) (names []string, err error) {
	dir = filepath.Clean(dir) // an empty name is the current directory, as it is for the names of the files
	if there, err := os.ReadDir(dir); len(there) > 0 {
		return nil, fmt.Errorf("%s is not empty", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	err = fs.WalkDir(files, "files", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := write(dir, path, from)
		names = append(names, name)
		return err
	})
	return names, err
}

// Claims is the name of the file of [WriteClaims].
const Claims = "claims.yaml"

// WriteClaims makes a claims file alone, in a directory that may be that of a module. It replaces none.
func WriteClaims(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, Claims)); err == nil {
		return fmt.Errorf("%s already holds %s", dir, Claims)
	}
	_, err := write(dir, "files/"+Claims+".tmpl", Source{})
	return err
}

func write(dir, path string, from Source) (name string, err error) {
	var text bytes.Buffer
	if err := template.Must(template.ParseFS(files, path)).Execute(&text, from); err != nil {
		return "", err
	}
	name = filepath.FromSlash(strings.TrimSuffix(strings.TrimPrefix(path, "files/"), ".tmpl"))
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
		return "", err
	}
	return name, os.WriteFile(filepath.Join(dir, name), text.Bytes(), 0o644)
}
