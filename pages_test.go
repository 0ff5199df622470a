package tenure_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/fleet"
	"github.com/tenure-go/tenure/nomination"
	"github.com/tenure-go/tenure/peer"
)

// TestPagesAreComplete checks that the reference pages list every name in the code.
func TestPagesAreComplete(t *testing.T) {
	for _, c := range []struct {
		page, source string
		names        *regexp.Regexp
		least        int
	}{
		{"docs/events.md", "event.go", regexp.MustCompile(`EventKind = "([a-z-]+)"`), 11},
		{"docs/events.md", "event.go", regexp.MustCompile("`json:\"([A-Za-z]+)"), 10},
		{"docs/events.md", "errors.go", regexp.MustCompile(`(?m)^//\t([a-z-]+)  `), 25},
		{"docs/record.md", "internal/record/record.go", regexp.MustCompile("`json:\"([A-Za-z]+)"), 17},
	} {
		page, source := read(t, c.page), read(t, c.source)
		found := c.names.FindAllStringSubmatch(source, -1)
		if len(found) < c.least {
			t.Errorf("%s: %v finds %d names, want %d", c.source, c.names, len(found), c.least)
		}
		for _, name := range found {
			if !strings.Contains(page, "`"+name[1]+"`") {
				t.Errorf("%s does not have %s of %s", c.page, name[1], c.source)
			}
		}
	}
}

// TestPageOfTheConfiguration: each field of each Config has a row.
func TestPageOfTheConfiguration(t *testing.T) {
	page := read(t, "docs/configuration.md")
	for _, c := range []struct {
		title  string
		config reflect.Type
	}{
		{"tenure.Config", reflect.TypeFor[tenure.Config]()},
		{"tenure.Tuning", reflect.TypeFor[tenure.Tuning]()},
		{"nomination.Config", reflect.TypeFor[nomination.Config]()},
		{"peer.Config", reflect.TypeFor[peer.Config]()},
		{"fleet.Config", reflect.TypeFor[fleet.Config]()},
	} {
		_, section, ok := strings.Cut(page, "\n## "+c.title+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !ok {
			t.Errorf("the page has no section %s", c.title)
		}
		for _, field := range reflect.VisibleFields(c.config) {
			if row := regexp.MustCompile("(?m)^\\|[^|]*`" + field.Name + "`"); !row.MatchString(section) {
				t.Errorf("section %s has no row of %s", c.title, field.Name)
			}
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
