package main

import (
	"errors"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEveryNameOfTheCoreIsUsed: each exported name of the root package has a use in another package
// of the tree outside of tests, or in an example. Any other name is a promise for no known need.
func TestEveryNameOfTheCoreIsUsed(t *testing.T) {
	for _, name := range unusedNames(t, root) {
		t.Errorf("package tenure exports %s, which only tests use: remove it, or use it in an example", name)
	}
}

// TestUnusedNamesAreFound shows that TestEveryNameOfTheCoreIsUsed can fail.
func TestUnusedNamesAreFound(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"tenure.go": `package tenure

			var ErrUsed, ErrShown, ErrTested, ErrOwn, ErrBench error

			type Used struct{}
			type Unused struct{}
			type Result int
			type Worker interface{ Work() }
			type Function func()

			func (Used) Error() string  { _ = ErrOwn; return "" }
			func (Used) Method() Result { return 0 }
			func (Used) Idle()          {}
			func (Function) Work()      {}`,
		"example_test.go": "package tenure_test\nimport \"" + core + "\"\nvar _ = tenure.ErrShown",
		"other_test.go":   "package tenure_test\nimport \"" + core + "\"\nvar _ = tenure.ErrTested",
		"test/bench/b.go": "package bench\nimport \"" + core + "\"\nvar _ = tenure.ErrBench",
		"user/user.go": "package user\nimport (\n\"" + core + "\"\n\"example.org/none\"\n\"slices\"\n)\n" +
			`func all(u []tenure.Used, w tenure.Worker) {
				none.Call(tenure.ErrUsed)
				all(nil, tenure.Function(nil))
				_ = slices.Max(u).Method()
			}`,
	} {
		file := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o777))
		must(t, os.WriteFile(file, []byte(text), 0o666))
	}
	want := []string{"ErrBench", "ErrOwn", "ErrTested", "Unused", "Used.Idle"}
	if got := unusedNames(t, dir); !slices.Equal(got, want) {
		t.Errorf("found %q; want %q", got, want)
	}
}

// tree type-checks the packages of a tree from source, and collects the uses of the core's names.
// Libraries of others are missing, so an expression whose type follows from them has no type.
type tree struct {
	found    map[string]*build.Package
	files    *token.FileSet
	standard types.Importer
	checked  map[string]*types.Package
	used     map[types.Object]bool
}

// unusedNames returns the names that package tenure at the top of a tree exports without need.
func unusedNames(t *testing.T, dir string) []string {
	t.Helper()
	all := &tree{
		found: packages(t, dir), files: token.NewFileSet(),
		checked: map[string]*types.Package{}, used: map[types.Object]bool{},
	}
	exports := all.exports(t)
	all.standard = importer.ForCompiler(all.files, "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(exports[name])
	})
	for name, p := range all.found {
		_, err := all.Import(name)
		must(t, err)
		if slices.Contains(p.XTestGoFiles, "example_test.go") {
			all.check(name+"_test", p.Dir, "example_test.go")
		}
	}
	return all.unused()
}

// packages returns the packages of a tree by path. The path of a module is that of its directory.
func packages(t *testing.T, dir string) map[string]*build.Package {
	t.Helper()
	found := map[string]*build.Package{}
	must(t, filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		base := entry.Name()
		switch {
		case err != nil || !entry.IsDir():
			return err
		case base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") && name != dir:
			return fs.SkipDir
		}
		p, err := build.Default.ImportDir(name, 0)
		if none := (*build.NoGoError)(nil); errors.As(err, &none) {
			return nil
		}
		local, _ := filepath.Rel(dir, name)
		found[path.Join(core, filepath.ToSlash(local))] = p
		return err
	}))
	return found
}

// exports returns the files that say what packages of the standard library export.
func (a *tree) exports(t *testing.T) map[string]string {
	t.Helper()
	args := []string{"list", "-export", "-f", "{{.ImportPath}}={{.Export}}"}
	for _, p := range a.found {
		for _, name := range slices.Concat(p.Imports, p.XTestImports) {
			if !strings.Contains(name, ".") {
				args = append(args, name)
			}
		}
	}
	out, err := exec.Command("go", args...).Output()
	must(t, err)
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		files[name] = file
	}
	return files
}

// Import implements types.Importer. In place of a package that it does not find, go/types has one
// without names.
func (a *tree) Import(name string) (*types.Package, error) {
	switch p := a.found[name]; {
	case a.checked[name] != nil:
		return a.checked[name], nil
	case p != nil:
		return a.check(name, p.Dir, p.GoFiles...), nil
	case name == "unsafe":
		return types.Unsafe, nil
	case strings.Contains(name, "."):
		return nil, errors.New("a library of others")
	}
	return a.standard.Import(name)
}

func (a *tree) check(name, dir string, files ...string) *types.Package {
	var parsed []*ast.File
	for _, file := range files {
		if f, _ := parser.ParseFile(a.files, filepath.Join(dir, file), nil, 0); f != nil {
			parsed = append(parsed, f)
		}
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	checker := types.Config{Importer: a, Error: func(error) {}, IgnoreFuncBodies: name == core}
	a.checked[name], _ = checker.Check(name, a.files, parsed, &info)
	if name != core && !strings.HasPrefix(name, core+"/test/") && !strings.HasPrefix(name, core+"/internal/test/") {
		a.use(&info)
	}
	return a.checked[name]
}

// use collects the names that a package uses, and the types of its expressions.
func (a *tree) use(info *types.Info) {
	for _, object := range info.Uses {
		a.used[object] = true
	}
	for _, e := range info.Types {
		if named, is := e.Type.(*types.Named); is {
			a.used[named.Obj()] = true
		}
	}
}

// unused returns the exported names of the core that have no use, with those of methods but
// not of fields. A method that the standard library or an interface of the core calls has a use.
func (a *tree) unused() (names []string) {
	called := []string{"Error", "Unwrap", "Is", "MarshalJSON"}
	add := func(name string, object types.Object) {
		if object.Exported() && !a.used[object] && !slices.Contains(called, object.Name()) {
			names = append(names, name)
		}
	}
	scope := a.checked[core].Scope()
	for _, name := range scope.Names() {
		if i, is := scope.Lookup(name).Type().Underlying().(*types.Interface); is {
			for m := range i.Methods() {
				called = append(called, m.Name())
			}
		}
	}
	for _, name := range scope.Names() {
		object := scope.Lookup(name)
		add(name, object)
		if named, is := object.Type().(*types.Named); is && named.Obj() == object && object.Exported() {
			for m := range named.Methods() {
				add(name+"."+m.Name(), m)
			}
		}
	}
	return names
}
