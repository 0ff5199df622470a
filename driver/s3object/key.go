package s3object

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxName is S3's limit on an object's name in bytes.
const maxName = 1024

func checkName(what, prefix, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the %s is empty", what)
	case len(prefix)+len(name) > maxName:
		return fmt.Errorf("%s %.40q...: %d bytes with the prefix, of at most %d", what, name, len(prefix)+len(name), maxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%s %q: not UTF-8", what, name)
	case strings.ContainsFunc(name, forbidden):
		return fmt.Errorf("%s %q: control characters cannot be in an object's name", what, name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("%s %q: part %q between slashes would be resolved away", what, name, part)
		}
	}
	return nil
}

// forbidden characters have no place in the XML that servers answer with.
func forbidden(r rune) bool { return r < ' ' || r == 0x7f }

// normalize makes "a/b", "/a/b" and "a/b/" the same.
func normalize(prefix string) (string, error) {
	prefix = strings.Trim(prefix, "/")
	if prefix == "" {
		return "", nil
	}
	if err := checkName("prefix", "", prefix); err != nil {
		return "", err
	}
	return prefix + "/", nil
}
