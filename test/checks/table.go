package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

const tableHead = "| step | result | time | commit | replay |\n|---|---|---|---|---|\n"

// row returns a line of the table, without the line break.
func (r result) row(commit string) string {
	replay := ""
	if r.replay != "" {
		replay = "`" + r.replay + "`"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", r.name, r.note(), short(r.took), commit, replay)
}

// merge writes the table of all steps of a file. Rows of this run replace those of earlier runs,
// which old holds.
func merge(out io.Writer, all []step, results []result, commit, old string) {
	rows := map[string]string{}
	for line := range strings.SplitSeq(old, "\n") {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			rows[strings.TrimSpace(cells[1])] = line
		}
	}
	for _, r := range results {
		rows[r.name] = r.row(commit)
	}
	fmt.Fprint(out, tableHead)
	for _, s := range all {
		if rows[s.name] != "" {
			fmt.Fprintln(out, rows[s.name])
		}
	}
}

// mergeInto merges the results into the table in a file, or creates the file.
func mergeInto(file string, all []step, results []result, commit string) error {
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var table strings.Builder
	merge(&table, all, results, commit, string(old))
	return os.WriteFile(file, []byte(table.String()), 0o666)
}
