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

func docOf(args []string) (string, error) {
	prose, _, err := find(args[0], args[1])
	return prose, err
}

func words(args []string) (string, error) {
	all, err := symbols(args[0])
	out := row("word", "meaning") + row("---", "---")
	for _, s := range all {
		if word := s.json + s.value; s.of == args[1] && word != "" {
			out += row("`"+word+"`", meaning(s.names, s.doc))
		}
	}
	return out, err
}

func reasons(args []string) (string, error) {
	_, lines, err := find(args[0], args[1])
	out := row("reason", "error", "meaning") + row("---", "---", "---")
	rows := columns(lines)
	for _, reason := range slices.Sorted(maps.Keys(rows)) {
		text, name := rows[reason][1], ""
		if m := regexp.MustCompile(`^\*?((\w*)\.)?([A-Z]\w+)(,.*)?$`).FindStringSubmatch(text); m != nil {
			prose, _, err := find(m[2], m[3])
			if err != nil {
				return "", err
			}
			text, name = meaning(m[3], prose), "`"+m[1]+m[3]+"`"+m[4]
		}
		out += row("`"+reason+"`", name, text)
	}
	return out, err
}

func config(args []string) (string, error) {
	_, lines, err := find(args[0], args[1])
	rows := columns(lines)
	out := row("field", "default", "limits", "meaning", "flag of `tenure run`") + row("---", "---", "---", "---", "---")
	all, _ := symbols(args[0])
	for _, s := range all {
		if s.of != args[1] || s.value != "" {
			continue
		}
		values := rows[strings.ReplaceAll(s.names, " ", "")]
		if len(values) < 3 {
			return "", fmt.Errorf("the comment of %s has no default of %s", args[1], s.names)
		}
		out += row("`"+strings.ReplaceAll(s.names, ", ", "`, `")+"`", values[1], values[2], meaning(s.names, s.doc), flags[args[0]+" "+s.names])
	}
	return out, err
}

func packages(args []string) (string, error) {
	released, err := run("bash", ".ci/released")
	if err != nil {
		return "", err
	}
	list := []string{"list", "-f", `{{if ne .Name "main"}}{{.ImportPath}}	{{.Doc}}{{end}}`}
	for dir := range strings.FieldsSeq(released) {
		list = append(list, "./"+filepath.Join(dir, "..."))
	}
	all, err := run("go", list...)
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

func help(args []string) (string, error) {
	out := ""
	for _, name := range args {
		text, err := run("go", "run", "./cmd/tenure", "help", name)
		if err != nil {
			return "", err
		}
		out += "### tenure " + name + "\n\n```text\n" + strings.TrimSpace(text) + "\n```\n\n"
	}
	return out, nil
}

// run returns the output of a command without the variables of Tenure.
func run(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
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

// meaning returns the prose of a comment without the name with which it begins.
func meaning(name, doc string) string {
	prose, _ := split(doc)
	return regexp.MustCompile(`^`+name+`(:| is| are| reports that|)\s`).ReplaceAllString(prose, "")
}
