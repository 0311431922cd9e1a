// Package yamlfile reads YAML files of users within bounds: a short text can describe a value of any size, by aliases
// in aliases, and parsers take memory by the square of the depth.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/quotabench/quotabench/internal/kit/format"
	"github.com/quotabench/quotabench/internal/kit/stat"
)

// Bounds of a file.
const (
	maxDepth  = 64      // levels of lists and mappings in each other
	maxIndent = 512     // columns before what a line says
	maxNodes  = 100_000 // values, with those of an alias at each place where it stands
)

// Parse returns the body of a text, which is nil if it is empty. An error names the path, the line and what to do.
func Parse(path string, data []byte, options ...parser.Option) (ast.Node, error) {
	if line := nested(data); line > 0 {
		return nil, fmt.Errorf("%s:%d: it is nested deeper than %d levels", path, line, maxDepth)
	}
	file, err := parser.ParseBytes(data, 0, options...)
	if err != nil {
		return nil, located(path, "not valid YAML: ", err)
	}
	var body ast.Node
	for i, document := range file.Docs {
		switch {
		case i == 0:
			body = document.Body
		case document.Body != nil:
			return nil, wrong(path, document.Body, "a second document begins: give one")
		}
	}
	sizes := sizes{}
	if body != nil && sizes.of(body) > maxNodes {
		return nil, wrong(path, body, fmt.Sprintf("its aliases stand for more than %d values: write fewer of them", maxNodes))
	}
	return body, nil
}

// Decode reads a text into a value that has a field for each of its keys. Errors are as those of [Parse].
func Decode(path string, data []byte, into any) error {
	if _, err := Parse(path, data); err != nil {
		return err
	}
	err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(into)
	if err == nil || errors.Is(err, io.EOF) { // which an empty text is
		return nil
	}
	return located(path, "", err)
}

// located is an error of the parser, with the path and the line.
func located(path, what string, err error) error {
	if e, ok := errors.AsType[yaml.Error](err); ok && e.GetToken() != nil && e.GetToken().Position != nil {
		line := max(e.GetToken().Position.Line, 1)
		return fmt.Errorf("%s:%d: %s%s", path, line, what, format.OneLine(e.GetMessage()))
	}
	return fmt.Errorf("%s: %s%s", path, what, format.OneLine(err.Error()))
}

// wrong is an error at a node.
func wrong(path string, node ast.Node, text string) error {
	line := 1
	if at := node.GetToken(); at != nil && at.Position != nil {
		line = max(at.Position.Line, 1)
	}
	return fmt.Errorf("%s:%d: %s", path, line, text)
}

// sizes are how many values the anchors of a text stand for, by their names.
type sizes map[string]int64

// of counts the values of a node. An alias counts as what it stands for, and one of an anchor that is still open, which
// the decoder refuses, as one.
func (s sizes) of(node ast.Node) int64 {
	switch n := node.(type) {
	case *ast.MappingNode:
		total := int64(1)
		for _, pair := range n.Values {
			total = stat.Sum(total, s.of(pair))
		}
		return total
	case *ast.MappingValueNode:
		return stat.Sum(s.of(n.Key), s.of(n.Value))
	case *ast.MappingKeyNode:
		return s.of(n.Value)
	case *ast.SequenceNode:
		total := int64(1)
		for _, value := range n.Values {
			total = stat.Sum(total, s.of(value))
		}
		return total
	case *ast.TagNode:
		return s.of(n.Value)
	case *ast.AnchorNode:
		size := s.of(n.Value)
		s[n.Name.GetToken().Value] = size
		return size
	case *ast.AliasNode:
		return max(1, s[n.Value.GetToken().Value])
	}
	return 1
}

// nested returns the first line on which a YAML text is deeper than maxDepth, or 0.
// Parsers take memory by the square of the depth, so it is looked at before.
// Quotation marks are not heeded: the bound is far above what a file needs.
func nested(data []byte) (line int) {
	depth := 0
	for text := range bytes.Lines(data) {
		line++
		begins := bytes.TrimLeft(text, " \t")
		if len(text)-len(begins) > maxIndent {
			return line
		}
		marks := 0
		for {
			rest := bytes.TrimLeft(begins, " \t")
			if len(rest) < 2 || !bytes.ContainsRune([]byte("-?:!&*|>"), rune(rest[0])) {
				break
			}
			marks++
			if marks > maxDepth {
				return line
			}
			begins = rest[1:]
			if rest[0] == '!' || rest[0] == '&' || rest[0] == '*' { // a tag, an anchor or an alias, with its name
				begins = bytes.TrimLeftFunc(begins, func(r rune) bool { return r != ' ' && r != '\t' && r != '\n' })
			}
		}
		for _, c := range text {
			switch c {
			case '[', '{':
				depth++
				if depth > maxDepth {
					return line
				}
			case ']', '}':
				depth = max(0, depth-1)
			}
		}
	}
	return 0
}
