package s3object

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits in bytes.
const (
	// maxName is S3's limit on an object's name.
	maxName = 1024
	// maxPart is the limit on a part between slashes of servers that keep objects as files or
	// folders, such as MinIO and versitygw.
	maxPart = 255
	// maxFolder leaves room for the names of a store's own objects.
	maxFolder = maxName - 40
)

func checkName(what, prefix, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the %s is empty", what)
	case len(prefix)+len(name) > maxName:
		return fmt.Errorf("%s %.40q...: %d bytes with the prefix, of at most %d", what, name, len(prefix)+len(name), maxName)
	case len(prefix)+len(folder(name)) > maxFolder:
		return fmt.Errorf("%s %.40q...: %d bytes with the prefix up to the last slash, of at most %d", what, name,
			len(prefix)+len(folder(name)), maxFolder)
	case !utf8.ValidString(name):
		return fmt.Errorf("%s %q: not UTF-8", what, name)
	case strings.ContainsFunc(name, forbidden):
		return fmt.Errorf("%s %q: control characters cannot be in an object's name", what, name)
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == "." || part == "..":
			return fmt.Errorf("%s %q: part %q between slashes would be resolved away", what, name, part)
		case len(part) > maxPart:
			return fmt.Errorf("%s %.40q...: part %.40q... has %d bytes, of at most %d between slashes", what, name, part, len(part),
				maxPart)
		}
	}
	return nil
}

// folder returns a name up to its last slash.
func folder(name string) string { return name[:strings.LastIndexByte(name, '/')+1] }

// forbidden characters have no place in the XML that servers answer with.
func forbidden(r rune) bool { return r < ' ' || r == 0x7f }

// normalize makes "a/b", "/a/b" and "a/b/" the same.
func normalize(prefix string) (string, error) {
	prefix = strings.Trim(prefix, "/")
	if prefix == "" {
		return "", nil
	}
	if len(prefix) >= maxFolder {
		return "", fmt.Errorf("prefix %.40q...: %d bytes, of at most %d", prefix, len(prefix), maxFolder-1)
	}
	if err := checkName("prefix", "", prefix); err != nil {
		return "", err
	}
	return prefix + "/", nil
}
