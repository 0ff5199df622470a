package jobs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"go.yaml.in/yaml/v2"
)

// Read returns the jobs of a file. Settings that neither a job nor its defaults name are those of
// Usual. The errors name the file, and the line if one is known.
func Read(file string) ([]Job, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	all, err := parse(text)
	if err != nil {
		return nil, explained(file, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: it has no jobs", file)
	}
	return all, nil
}

func parse(text []byte) ([]Job, error) {
	doc := struct {
		Defaults Settings `yaml:"defaults"`
		Jobs     []later  `yaml:"jobs"`
	}{Defaults: Usual()}
	in := yaml.NewDecoder(bytes.NewReader(text))
	in.SetStrict(true)
	if err := in.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if in.Decode(new(any)) == nil {
		return nil, errors.New("it has more than one document")
	}
	all := make([]Job, len(doc.Jobs))
	var problems yaml.TypeError
	for i, fill := range doc.Jobs {
		all[i].Settings = doc.Defaults
		if fill.into == nil { // an item without a value
			continue
		}
		err := fill.into(&all[i])
		if wrong := (*yaml.TypeError)(nil); errors.As(err, &wrong) {
			problems.Errors = append(problems.Errors, wrong.Errors...)
		} else if err != nil {
			return nil, err
		}
	}
	if len(problems.Errors) > 0 {
		return nil, &problems
	}
	return all, nil
}

// later is a part of a document that is read when the defaults are known.
type later struct{ into func(any) error }

// UnmarshalYAML notes how to read the part.
func (l *later) UnmarshalYAML(into func(any) error) error {
	l.into = into
	return nil
}

// Command is a program and its arguments. In a file, a text instead of a list is for the shell.
type Command []string

// UnmarshalYAML reads a text or a list.
func (c *Command) UnmarshalYAML(into func(any) error) error {
	var text string
	if into(&text) == nil {
		if text != "" {
			*c = Command{"sh", "-c", text}
		}
		return nil
	}
	return into((*[]string)(c))
}

// Duration is written as 1h30m.
type Duration time.Duration

// UnmarshalYAML reads a text with units.
func (d *Duration) UnmarshalYAML(into func(any) error) error {
	var text string
	if err := into(&text); err != nil {
		return err
	}
	parsed, err := time.ParseDuration(text)
	if err != nil || parsed < 0 {
		return into(&interval{}) // it fails, and names the line
	}
	*d = Duration(parsed)
	return nil
}

// interval is in the error for a text that is no duration.
type interval struct{}

var (
	unknownField = regexp.MustCompile(`^(line \d+): field (.*) (not found|already set) in type .*$`)
	wrongType    = regexp.MustCompile("^(line \\d+): cannot unmarshal !!(\\w+)(?: `(.*)`)? into (.*)$")
	expected     = map[string]string{
		"jobs.interval": "a time such as 500ms, 15s or 1h30m", "bool": "true or false", "string": "a text", "[]string": "a text or a list of texts",
	}
)

// explained returns the errors of the library in the words of this program.
func explained(file string, err error) error {
	types := (*yaml.TypeError)(nil)
	if !errors.As(err, &types) {
		text := strings.TrimPrefix(err.Error(), "yaml: ")
		hint := ""
		if strings.Contains(text, "alphabetic or numeric") || strings.Contains(text, "start any token") {
			hint = `put a schedule that begins with * or @ between quotes: "*/15 * * * *"`
		}
		return fault.New(hint, "%s: %s", file, text)
	}
	var problems []error
	for _, text := range types.Errors {
		if m := unknownField.FindStringSubmatch(text); m != nil {
			text = fmt.Sprintf("%s: there is no setting %q", m[1], m[2])
			if m[3] == "already set" {
				text = fmt.Sprintf("%s: %q is given twice", m[1], m[2])
			}
		} else if m := wrongType.FindStringSubmatch(text); m != nil {
			must := expected[m[4]]
			if must == "" {
				must = "another kind of value"
			}
			value := fmt.Sprintf("%q", m[3])
			if m[3] == "" {
				value = "a " + strings.Replace(m[2], "seq", "list", 1)
			}
			text = fmt.Sprintf("%s: %s is not %s", m[1], value, must)
		}
		problems = append(problems, fmt.Errorf("%s: %s", file, text))
	}
	return errors.Join(problems...)
}
