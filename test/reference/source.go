package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
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
func symbols(dir string) (all []symbol, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					all = append(all, symbol{names: d.Name.Name, doc: d.Doc.Text()})
				}
			case *ast.GenDecl:
				if len(d.Specs) > 1 {
					d.Doc = nil // it is about all of them
				}
				for _, spec := range d.Specs {
					all = append(all, declared(spec, d.Doc)...)
				}
			}
		}
	}
	return all, err
}

func declared(spec ast.Spec, doc *ast.CommentGroup) (all []symbol) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		all = append(all, symbol{names: s.Name.Name, doc: doc.Text() + s.Doc.Text()})
		if structure, ok := s.Type.(*ast.StructType); ok {
			for _, f := range structure.Fields.List {
				all = append(all, fieldOf(s.Name.Name, f))
			}
		}
	case *ast.ValueSpec:
		v := symbol{names: joined(s.Names), doc: doc.Text() + s.Doc.Text()}
		if of, ok := s.Type.(*ast.Ident); ok && len(s.Values) == 1 {
			if literal, ok := s.Values[0].(*ast.BasicLit); ok {
				v.of, v.value = of.Name, strings.Trim(literal.Value, `"`)
			}
		}
		all = append(all, v)
	}
	return all
}

func fieldOf(of string, f *ast.Field) symbol {
	field := symbol{of: of, names: joined(f.Names), doc: f.Doc.Text()}
	if f.Tag != nil {
		tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`"))
		field.json, _, _ = strings.Cut(tag.Get("json"), ",")
	}
	return field
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
func find(dir, name string) (prose string, lines []string, err error) {
	all, err := symbols(dir)
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
	return "", nil, errors.Join(err, fmt.Errorf("%s in %q has no comment", name, dir))
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
	if len(lines) == 0 {
		return nil
	}
	all, last := map[string][]string{}, ""
	starts := regexp.MustCompile(`\S+( \S+)*`).FindAllStringIndex(lines[0], -1)
	for _, line := range lines[1:] {
		if !strings.HasPrefix(line, " ") {
			last, _, _ = strings.Cut(line, " ")
			all[last] = make([]string, len(starts))
		}
		for i, start := range slices.Backward(starts) {
			from := min(start[0], len(line))
			all[last][i] = strings.TrimSpace(all[last][i] + " " + strings.TrimSpace(line[from:]))
			runsOver := i > 0 && from > 0 && from < len(line) && line[from-1] != ' '
			if line = line[:from]; runsOver {
				return nil
			}
		}
	}
	return all
}
