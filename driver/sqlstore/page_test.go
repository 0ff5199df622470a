package sqlstore

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPageShowsTheTables: docs/sql.md has the statements that Create sends.
func TestPageShowsTheTables(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "sql.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []Dialect{Postgres(), MySQL(), SQLite()} {
		want := "\n\n" + newStore(t, &sql.DB{}, d).CreateStatement() + ";"
		if want = strings.ReplaceAll(want, "\n", "\n    "); !strings.Contains(string(page), strings.Replace(want, "\n    \n", "\n\n", 1)+"\n") {
			t.Errorf("docs/sql.md lacks, for %s:%s", d.name, want)
		}
	}
}
