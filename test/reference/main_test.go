package main

import "testing"

func TestPagesAreUpToDate(t *testing.T) {
	t.Chdir("../..")
	for _, page := range pages {
		old, made, err := render(page)
		switch {
		case err != nil:
			t.Error(err)
		case old != made:
			t.Errorf("%s differs from the code: run go run ./test/reference", page)
		}
	}
}
