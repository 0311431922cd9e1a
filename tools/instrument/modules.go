//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
)

// module is a line of a go.mod.
type module struct {
	Path, Version string
	Indirect      bool
}

// sameModules gives the earlier commit the versions that this tree has of the modules
// that both name: what a client library costs is no difference between the two. It
// returns the modules whose version was changed.
func (t *tool) sameModules(ctx context.Context) (changed []module, err error) {
	here, err := requirements(ctx, t.here.root)
	if err != nil {
		return nil, err
	}
	base, err := requirements(ctx, t.base.root)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, module := range here {
		versions[module.Path] = module.Version
	}
	get := []string{"get"}
	for _, module := range base {
		if text := versions[module.Path]; text != "" && text != module.Version && !module.Indirect {
			changed = append(changed, module)
			get = append(get, module.Path+"@"+text)
		}
	}
	for _, args := range [][]string{get, {"mod", "tidy"}} {
		if len(changed) == 0 {
			break
		}
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = t.base.root
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go %s in the earlier commit: %w: %s", args[0], err, lastLine(string(out)))
		}
	}
	return changed, nil
}

// requirements are those of the go.mod in a folder.
func requirements(ctx context.Context, folder string) ([]module, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "edit", "-json")
	cmd.Dir = folder
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("read go.mod in %s: %w", folder, err)
	}
	var mod struct{ Require []module }
	if err := json.Unmarshal(out, &mod); err != nil {
		return nil, fmt.Errorf("read go.mod in %s: %w", folder, err)
	}
	return mod.Require, nil
}
