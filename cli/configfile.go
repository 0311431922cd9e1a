package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/quotabench/quotabench/internal/format"
	"github.com/quotabench/quotabench/quota"
)

// readFile takes over what a configuration file says, but for settings that were
// given as flags.
func (s *settings) readFile(path string) error {
	b, err := readBounded(path)
	if err != nil {
		return usagef("--config: %w", err)
	}
	return s.read(path, b)
}

// misread is something wrong with a configuration, and where.
func misread(path string, t *token.Token, format string, args ...any) error {
	line := 1
	if t != nil && t.Position != nil {
		line = max(t.Position.Line, 1)
	}
	return usagef("%s:%d: %w", path, line, fmt.Errorf(format, args...))
}

// read is [settings.readFile] for bytes at hand. It is strict: what it does not
// know is an error, not ignored.
func (s *settings) read(path string, b []byte) error {
	if line := nested(b); line > 0 {
		return usagef("%s:%d: it is nested deeper than %d levels: write one key: value per line", path, line, maxDepth)
	}
	file, err := parser.ParseBytes(b, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var e yaml.Error
		if errors.As(err, &e) {
			return misread(path, e.GetToken(), "not valid YAML: %s", format.OneLine(e.GetMessage()))
		}
		return usagef("%s: not valid YAML: %s", path, format.OneLine(err.Error()))
	}
	seen := map[string]int{}
	for i, doc := range file.Docs {
		if i > 0 && doc.Body != nil {
			return misread(path, doc.Body.GetToken(), "a second document begins: give one configuration")
		}
		if err := s.readDocument(path, doc.Body, seen); err != nil {
			return err
		}
	}
	return nil
}

func (s *settings) readDocument(path string, body ast.Node, seen map[string]int) error {
	var pairs []*ast.MappingValueNode
	switch n := body.(type) {
	case nil, *ast.CommentGroupNode, *ast.NullNode: // nothing is set
		return nil
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	default:
		return misread(path, body.GetToken(), "not a configuration: write one key: value per line, the keys named like the command's flags")
	}
	for _, p := range pairs {
		if err := s.readPair(path, p, seen); err != nil {
			return err
		}
	}
	return nil
}

func (s *settings) readPair(path string, p *ast.MappingValueNode, seen map[string]int) error {
	at := p.Key.GetToken()
	key, ok := p.Key.(*ast.StringNode)
	if !ok {
		return misread(path, at, "%q is not a key: %s", format.OneLine(at.Value), quota.OneOf("", s.names()))
	}
	name := key.Value
	x := s.lookup(name)
	if x == nil {
		if hint := nearest(name, s.names(), ""); hint != "" {
			return misread(path, at, "unknown key %q%s", name, hint)
		}
		return misread(path, at, "unknown key %q: %s", name, quota.OneOf(name, s.names()))
	}
	if line, dup := seen[name]; dup {
		return misread(path, at, "%s is given twice, first on line %d: keep one", name, line)
	}
	seen[name] = at.Position.Line
	if _, null := p.Value.(*ast.NullNode); null && x.computed {
		return nil
	}
	if s.rank(name) == byFlag {
		// The flag wins. What the file says must be right all the same, or the
		// error would come and go with the flag.
		x = s.fresh().lookup(name)
	} else {
		s.places[name] = fmt.Sprintf("%s:%d", path, at.Position.Line)
	}
	if where, err := x.take(p.Value); err != nil {
		return misread(path, cmp.Or(where, at), "%s%w", name, err)
	}
	return nil
}

// take sets the value to what a node of YAML says. Errors follow upon the
// setting's name; where is nil if that is where they are.
func (x *setting) take(n ast.Node) (where *token.Token, err error) {
	if seq, ok := n.(*ast.SequenceNode); ok {
		l, ok := x.value.(*list)
		if !ok {
			return nil, fmt.Errorf(" is a list: %s", x.value.wanted())
		}
		if len(seq.Values) > maxItems {
			return nil, fmt.Errorf(" is a list of %d: give at most %d", len(seq.Values), maxItems)
		}
		items := make([]string, len(seq.Values))
		for i, v := range seq.Values {
			if items[i], err = x.text(v); err != nil {
				return v.GetToken(), err
			}
			if items[i] == "" {
				return v.GetToken(), fmt.Errorf(" \"\": %w", errEmpty)
			}
			if x.secret {
				items[i] = unredact(items[i])
			}
		}
		l.replace(items)
		return nil, nil
	}
	text, err := x.text(n)
	if err != nil {
		return nil, err
	}
	if x.secret {
		text = unredact(text)
	}
	if err := x.value.Set(text); err != nil {
		return nil, fmt.Errorf(" %q: %w", text, err)
	}
	return nil, nil
}

// text is a scalar of YAML as it would stand on the command line.
func (x *setting) text(n ast.Node) (string, error) {
	var kind scalar
	var text string
	switch n := n.(type) {
	case *ast.StringNode:
		kind, text = scalarText, n.Value
	case *ast.LiteralNode:
		kind, text = scalarText, n.Value.Value
	case *ast.IntegerNode:
		kind, text = scalarNumber, fmt.Sprint(n.Value)
	case *ast.FloatNode:
		kind, text = scalarNumber, n.Token.Value
	case *ast.InfinityNode, *ast.NanNode:
		kind, text = scalarNumber, strings.Replace(n.GetToken().Value, ".", "", 1)
	case *ast.BoolNode:
		kind, text = scalarBool, fmt.Sprint(n.Value)
	case *ast.NullNode:
		return "", fmt.Errorf(" has no value: %s", x.value.wanted())
	default:
		return "", fmt.Errorf(" is not a plain value: %s", x.value.wanted())
	}
	if !x.value.holds(kind) {
		return "", fmt.Errorf(" %q is %s: %s", text, kind, x.value.wanted())
	}
	return text, nil
}
