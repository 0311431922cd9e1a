package settings

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
	"github.com/spf13/cobra"

	"github.com/quotabench/quotabench/internal/kit/exit"
	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/redact"
	"github.com/quotabench/quotabench/internal/kit/yamlfile"
	"github.com/quotabench/quotabench/quota"
)

// FileFlag is the flag of commands that take settings from a file.
const FileFlag = "config"

// reader reads one configuration file.
type reader struct {
	*Set
	path string
	seen map[string]int // the line of each key
}

// ReadFile takes over what a configuration file says, except for settings that were given as
// flags. What it does not know is an error.
func (s *Set) ReadFile(path string) error {
	data, err := ReadBounded(path)
	if err != nil {
		return exit.Usagef("--config: %w", err)
	}
	return s.ReadBytes(path, data)
}

// ReadBytes is [Set.ReadFile] for a file that was read.
func (s *Set) ReadBytes(path string, data []byte) error {
	r := reader{s, path, map[string]int{}}
	body, err := yamlfile.Parse(path, data, parser.AllowDuplicateMapKey())
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	return r.document(body)
}

// wrong is an error at a place of the file.
func (r *reader) wrong(t *token.Token, format string, args ...any) error {
	line := 1
	if t != nil && t.Position != nil {
		line = max(t.Position.Line, 1)
	}
	return exit.Usagef("%s:%d: %w", r.path, line, fmt.Errorf(format, args...))
}

// document reads the keys at the top, which are for every command that has a section, and the section of this command.
func (r *reader) document(body ast.Node) error {
	pairs, err := r.pairs(body)
	if err != nil {
		return err
	}
	var sections []*cobra.Command
	for _, node := range pairs {
		if cmd := r.section(node); cmd != nil {
			sections = append(sections, cmd)
		}
	}
	for _, node := range pairs {
		switch r.section(node) {
		case nil:
			err = r.pair(node, sections)
		case r.cmd:
			var own []*ast.MappingValueNode
			own, err = r.pairs(node.Value)
			for i := 0; i < len(own) && err == nil; i++ {
				err = r.pair(own[i], nil)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// section is the command that a key names, if it takes settings from a file.
func (r *reader) section(node *ast.MappingValueNode) *cobra.Command {
	for _, cmd := range r.cmd.Root().Commands() {
		if cmd.Name() == node.Key.GetToken().Value && cmd.Flags().Lookup(FileFlag) != nil {
			return cmd
		}
	}
	return nil
}

func (r *reader) pairs(body ast.Node) ([]*ast.MappingValueNode, error) {
	switch n := body.(type) {
	case nil, *ast.CommentGroupNode, *ast.NullNode: // nothing is set
		return nil, nil
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, nil
	case *ast.MappingNode:
		return n.Values, nil
	}
	return nil, r.wrong(body.GetToken(),
		"not a configuration: write one key: value per line, the keys named like the command's flags")
}

// pair reads one key. What this command does not know may be for another one that has a section.
func (r *reader) pair(node *ast.MappingValueNode, sections []*cobra.Command) error {
	at := node.Key.GetToken()
	key, ok := node.Key.(*ast.StringNode)
	if !ok {
		return r.wrong(at, "%q is not a key: %s", format.OneLine(at.Value), quota.OneOf("", r.keys()))
	}
	name := key.Value
	setting := r.Lookup(name)
	if setting == nil && slices.ContainsFunc(sections, func(cmd *cobra.Command) bool { return has(cmd, name) }) {
		return nil
	}
	if setting == nil || setting.FlagOnly {
		return r.wrong(at, "unknown key %q%s", name, cmp.Or(nearest(name, r.keys(), ""), ": "+quota.OneOf(name, r.keys())))
	}
	if line, dup := r.seen[name]; dup {
		return r.wrong(at, "%s is given twice, first on line %d: keep one", name, line)
	}
	r.seen[name] = at.Position.Line
	if _, null := node.Value.(*ast.NullNode); null && setting.Computed {
		return nil
	}
	byFlag := r.Rank(name) == ByFlag
	if !byFlag {
		r.places[name] = fmt.Sprintf("%s:%d", r.path, at.Position.Line)
	}
	take, where, err := setting.read(node.Value)
	if err != nil {
		return r.wrong(cmp.Or(where, at), "%s%w", name, err)
	}
	// The flag wins. What the file says must be right all the same, or the error would come
	// and go with the flag.
	if !byFlag {
		take()
	}
	return nil
}

// read is what a node of YAML says. Errors follow the setting's name; where is nil if that
// is where they are.
func (x *Setting) read(n ast.Node) (take func(), where *token.Token, err error) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		text, err := x.scalar(n)
		if err != nil {
			return nil, nil, err
		}
		take, err = x.Value.parse(text)
		if err != nil {
			err = fmt.Errorf(" %q: %w", text, err)
		}
		return take, nil, err
	}
	switch {
	case x.Value.items == nil:
		return nil, nil, fmt.Errorf(" is a list: %s", x.Value.wants)
	case len(seq.Values) > maxItems:
		return nil, nil, fmt.Errorf(" is a list of %d: give at most %d", len(seq.Values), maxItems)
	}
	items := make([]string, len(seq.Values))
	for i, node := range seq.Values {
		items[i], err = x.scalar(node)
		if err == nil && items[i] == "" {
			err = fmt.Errorf(" \"\": %w", errEmpty)
		}
		if err != nil {
			return nil, node.GetToken(), err
		}
	}
	return func() { *x.Value.items = items }, nil, nil
}

// scalar is one of YAML as it would stand on the command line.
func (x *Setting) scalar(n ast.Node) (text string, err error) {
	var kind scalar
	switch n := n.(type) {
	case *ast.StringNode:
		kind = scalarText
		text = n.Value
	case *ast.LiteralNode:
		kind = scalarText
		text = n.Value.Value
	case *ast.IntegerNode:
		kind = scalarNumber
		text = fmt.Sprint(n.Value)
	case *ast.FloatNode:
		kind = scalarNumber
		text = n.Token.Value
	case *ast.InfinityNode, *ast.NanNode:
		kind = scalarNumber
		text = strings.Replace(n.GetToken().Value, ".", "", 1)
	case *ast.BoolNode:
		kind = scalarBool
		text = fmt.Sprint(n.Value)
	case *ast.NullNode:
		return "", fmt.Errorf(" has no value: %s", x.Value.wants)
	default:
		return "", fmt.Errorf(" is not a plain value: %s", x.Value.wants)
	}
	if !x.Value.holds(kind) {
		return "", fmt.Errorf(" %q is %s: %s", text, kind, x.Value.wants)
	}
	if x.Secret {
		text = redact.Restore(text)
	}
	return text, nil
}

// maxConfig is how many bytes a configuration, a policy or a list of claims or faults has at most.
const maxConfig = 1 << 18

// ReadBounded reads a file of maxConfig bytes at most: see [ReadUpTo].
func ReadBounded(path string) ([]byte, error) { return ReadUpTo(path, maxConfig) }

// ReadUpTo reads a file of so many bytes at most, since a device never ends. A pipe may never begin: callers give it up
// when their context ends.
func ReadUpTo(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, format.Unreadable(path, err)
	}
	defer func() { _ = file.Close() }() // nothing was written that closing could lose
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		return nil, format.Unreadable(path, err)
	case int64(len(data)) > most:
		return nil, fmt.Errorf("%s has more than %d bytes, which is the most that is read", path, most)
	}
	return data, nil
}
