package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// symbol is a declaration of a package, or a field of a type.
type symbol struct {
	of, names string // the type of a field or of a constant, and its names, with ", " between them
	doc       string
	value     string // of a constant
	json      string // of a field
}

// symbols returns the declarations of the package in a directory, in the order of the source.
func (t tree) symbols(dir string) (all []symbol, err error) {
	files, err := filepath.Glob(filepath.Join(string(t), dir, "*.go"))
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok {
				doc := d.Doc.Text()
				if d.Lparen.IsValid() {
					doc = "" // it is about all of them
				}
				for _, spec := range d.Specs {
					all = append(all, declared(spec, doc)...)
				}
			} else if d := decl.(*ast.FuncDecl); d.Recv == nil {
				all = append(all, symbol{names: d.Name.Name, doc: d.Doc.Text()})
			}
		}
	}
	return all, err
}

func declared(spec ast.Spec, doc string) []symbol {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		all := []symbol{{names: s.Name.Name, doc: doc + s.Doc.Text()}}
		if structure, ok := s.Type.(*ast.StructType); ok {
			all = append(all, fieldsOf(s.Name.Name, structure)...)
		}
		return all
	case *ast.ValueSpec:
		v := symbol{names: joined(s.Names), doc: doc + s.Doc.Text() + s.Comment.Text()}
		of, typed := s.Type.(*ast.Ident)
		if literal, ok := first(s.Values).(*ast.BasicLit); ok && typed {
			v.of = of.Name
			v.value, _ = strconv.Unquote(literal.Value)
		}
		return []symbol{v}
	}
	return nil
}

func fieldsOf(of string, s *ast.StructType) []symbol {
	var all []symbol
	for _, f := range s.Fields.List {
		field := symbol{of: of, names: joined(f.Names), doc: f.Doc.Text() + f.Comment.Text()}
		if f.Tag != nil {
			tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`"))
			field.json, _, _ = strings.Cut(tag.Get("json"), ",")
		}
		if ast.IsExported(field.names) {
			all = append(all, field)
		}
	}
	return all
}

func first(all []ast.Expr) ast.Expr {
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

func joined(idents []*ast.Ident) string {
	var all []string
	for _, i := range idents {
		all = append(all, i.Name)
	}
	return strings.Join(all, ", ")
}

// find returns the comment of a declaration, or of TYPE.FIELD: its prose, and the lines of its
// tables and examples.
func (t tree) find(dir, name string) (prose string, lines []string, err error) {
	all, err := t.symbols(dir)
	for _, s := range all {
		full := s.names
		if s.of != "" && s.value == "" { // a field
			full = s.of + "." + s.names
		}
		if full == name && s.doc != "" {
			prose, lines = split(s.doc)
			return prose, lines, err
		}
	}
	return "", nil, fmt.Errorf("%s in %q has no comment: %v", name, dir, err)
}

func split(doc string) (prose string, lines []string) {
	for line := range strings.Lines(doc) {
		if indented, ok := strings.CutPrefix(line, "\t"); ok {
			lines = append(lines, strings.TrimSuffix(indented, "\n"))
		} else {
			prose += line
		}
	}
	return strings.TrimSpace(regexp.MustCompile(`\n{3,}`).ReplaceAllString(prose, "\n\n")), lines
}

// columns returns the rows of a table in a comment. Cells begin where the words of its first line
// do. A line without a first cell continues the row before. It returns nil if a cell runs into the
// next one.
func columns(lines []string) map[string][]string {
	all, last := map[string][]string{}, ""
	if len(lines) == 0 {
		return nil
	}
	starts := regexp.MustCompile(`\S+( \S+)*`).FindAllStringIndex(lines[0], -1)
	for _, line := range lines[1:] {
		if !strings.HasPrefix(line, " ") {
			last, _, _ = strings.Cut(line, " ")
			all[last] = make([]string, len(starts))
		}
		for i, start := range starts {
			end := len(line)
			if i+1 < len(starts) {
				end = min(end, starts[i+1][0])
			}
			if end < len(line) && i+1 < len(starts) && line[end-1] != ' ' {
				return nil
			}
			cell := line[min(start[0], end):end]
			all[last][i] = strings.TrimSpace(all[last][i] + " " + strings.TrimSpace(cell))
		}
	}
	return all
}
