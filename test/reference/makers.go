package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const module = "github.com/tenure-go/tenure"

// flags are the flags of `tenure run` that set a field.
var flags = map[string]string{
	". ID": "`--id`", ". Address": "`--peer-address`", ". Priority": "`--priority`", ". Lease": "`--lease`",
	". StopWithin": "`--stop-within`", ". FinishWithin": "`--finish-within`", ". Metrics": "`--metrics`",
	". Logger": "`--log-format`, `--log-level`, `--json`", ". Renew": "`--renew`", ". Splay": "`--splay`",
	"nomination Nominator": "`?mode=neli` on Kafka", "nomination Only": "`?nominee-only=true` on Kafka",
	"peer Networks": "`--peer-allow`", "peer ServerTLS, ClientTLS": "`--peer-ca`, `--peer-cert`, `--peer-key`",
}

func docOf(t tree, args []string) (string, error) {
	prose, _, err := t.find(args[0], args[1])
	return prose, err
}

func words(t tree, args []string) (string, error) {
	all, err := t.symbols(args[0])
	out := row("word", "meaning") + row("---", "---")
	for _, s := range all {
		if word := s.json + s.value; s.of == args[1] && word != "" {
			prose, _ := split(s.doc)
			out += row("`"+word+"`", meaning(s.names, prose))
		}
	}
	return out, err
}

func reasons(t tree, args []string) (string, error) {
	_, lines, err := t.find(args[0], args[1])
	out := row("reason", "error", "meaning") + row("---", "---", "---")
	rows := columns(lines)
	for _, reason := range slices.Sorted(maps.Keys(rows)) {
		text, name := rows[reason][1], ""
		if m := regexp.MustCompile(`^\*?((\w*)\.)?([A-Z]\w+)(,.*)?$`).FindStringSubmatch(text); m != nil {
			prose, _, err := t.find(m[2], m[3])
			if err != nil {
				return "", err
			}
			text, name = meaning(m[3], prose), "`"+m[1]+m[3]+"`"+m[4]
		}
		out += row("`"+reason+"`", name, text)
	}
	return out, err
}

func config(t tree, args []string) (string, error) {
	_, lines, err := t.find(args[0], args[1])
	rows := columns(lines)
	out := row("field", "default", "limits", "meaning", "flag of `tenure run`") + row("---", "---", "---", "---", "---")
	all, _ := t.symbols(args[0])
	for _, s := range all {
		if s.of != args[1] || s.value != "" {
			continue
		}
		values := rows[strings.ReplaceAll(s.names, " ", "")]
		if len(values) < 3 {
			return "", fmt.Errorf("the comment of %s has no default of %s", args[1], s.names)
		}
		prose, _ := split(s.doc)
		out += row("`"+strings.ReplaceAll(s.names, ", ", "`, `")+"`", values[1], values[2], meaning(s.names, prose), flags[args[0]+" "+s.names])
	}
	return out, err
}

func packages(t tree, args []string) (string, error) {
	released, err := t.run("bash", ".ci/released")
	if err != nil {
		return "", err
	}
	list := []string{"list", "-f", `{{if ne .Name "main"}}{{.ImportPath}}	{{.Doc}}{{end}}`}
	for dir := range strings.FieldsSeq(released) {
		list = append(list, "./"+filepath.Join(dir, "..."))
	}
	all, err := t.run("go", list...)
	in := regexp.MustCompile("^" + module + args[0])
	out := row("package", "contents") + row("---", "---")
	for _, line := range slices.Sorted(strings.Lines(all)) {
		path, doc, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if in.MatchString(path) && !strings.Contains(path, "/internal") {
			name := strings.TrimPrefix(path, module[:strings.LastIndex(module, "/")+1])
			doc = regexp.MustCompile(`^Package \w+ (is )?`).ReplaceAllString(doc, "")
			out += row("["+strings.TrimPrefix(name, "tenure/")+"](https://pkg.go.dev/"+path+")", doc)
		}
	}
	return out, err
}

func help(t tree, args []string) (string, error) {
	dir, err := os.MkdirTemp("", "reference")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	command := filepath.Join(dir, "tenure")
	if _, err := t.run("go", "build", "-o", command, "./cmd/tenure"); err != nil {
		return "", err
	}
	out := ""
	for _, name := range args {
		text, err := t.run(command, "help", name)
		if err != nil {
			return "", err
		}
		out += "### tenure " + name + "\n\n```text\n" + strings.TrimSpace(text) + "\n```\n\n"
	}
	return out, nil
}

// run returns the output of a command at the top of the tree, without the variables of Tenure.
func (t tree) run(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = string(t), os.Stderr
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TENURE_") })
	text, err := cmd.Output()
	return string(text), err
}

// row returns a row of a table in Markdown.
func row(cells ...string) string {
	for i, c := range cells {
		c = strings.TrimSuffix(strings.Join(strings.Fields(c), " "), ".")
		cells[i] = strings.NewReplacer("|", `\|`, "*", `\*`, "<", `\<`).Replace(c)
	}
	return strings.ReplaceAll("| "+strings.Join(cells, " | ")+" |\n", "|  |", "| |")
}

// meaning returns a comment without the name with which it begins.
func meaning(name, prose string) string {
	return regexp.MustCompile(`^`+name+`(:| is| are| reports that|)\s`).ReplaceAllString(prose, "")
}
