// Package overlay plants changes in source that is then built with them, for programs that prove
// that their checks notice a mistake. The source itself knows nothing of it, and is not touched.
package overlay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Edit is one change to the text of a file.
type Edit struct {
	// File is named from the top that Write is given, with slashes.
	File string
	// Old must be in it exactly once.
	Old, New string
}

// Write puts the changed files into dir and returns the list of them for go build -overlay. It
// fails if an edit does not fit the present source.
func Write(top, dir string, edits []Edit) (list string, err error) {
	changed := map[string]string{}
	for _, e := range edits {
		path := filepath.Join(top, filepath.FromSlash(e.File))
		text, ok := changed[path]
		if !ok {
			source, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			text = string(source)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return "", fmt.Errorf("%s holds this text %d times, not once:\n%s", e.File, n, e.Old)
		}
		changed[path] = strings.Replace(text, e.Old, e.New, 1)
	}
	return write(dir, changed)
}

func write(dir string, changed map[string]string) (list string, err error) {
	replace := map[string]string{}
	for path, text := range changed {
		copied := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[path] = copied
	}
	encoded, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list = filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, encoded, 0o600)
}
