package jobs

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"
)

// kept are the files with the output of runs: DIR/JOB/PLANNED.log.
type kept struct {
	dir  string // empty: no output is kept
	most int    // for each job
}

// planned is the layout of the names of files. They have no colon, which some tools and systems do
// not take, and sort by time.
const planned = "20060102T150405Z"

var nameOfOutput = regexp.MustCompile(`^\d{8}T\d{6}Z\.log$`)

// open makes the directory of a job, and returns the file for a tick; empty if no output is kept.
func (k *kept) open(job string, at time.Time) (file string, err error) {
	if k.dir == "" {
		return "", nil
	}
	dir := filepath.Join(k.dir, job)
	return filepath.Join(dir, at.UTC().Format(planned)+".log"), os.MkdirAll(dir, 0o750)
}

// prune removes the oldest files beside this one.
func (k *kept) prune(file string) error {
	dir := filepath.Dir(file)
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		return !nameOfOutput.MatchString(e.Name()) || e.Name() == filepath.Base(file)
	})
	for i := range len(entries) - (k.most - 1) {
		err = errors.Join(err, os.Remove(filepath.Join(dir, entries[i].Name())))
	}
	return err
}

// longestLine bounds the memory for a line; a longer one is written in parts.
const longestLine = 64 << 10

// writing is held while a line is written: several jobs share the output of this process.
var writing sync.Mutex

// passOn copies lines with a prefix until the end of the input, and closes that. If the output
// fails, it still reads: the command must not hang.
func passOn(out io.Writer, in io.ReadCloser, prefix string) {
	defer func() { _ = in.Close() }()
	lines := bufio.NewReaderSize(in, longestLine)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			line = append([]byte(prefix), line...)
			if line[len(line)-1] != '\n' {
				line = append(line, '\n')
			}
			writing.Lock()
			_, _ = out.Write(line)
			writing.Unlock()
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
