package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"
)

var (
	moment  = time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	program = []entry{{"top/tenure", []byte("binary"), 0o755}, {"top/man/tenure.1", []byte("page"), 0o644}}
)

func TestTarred(t *testing.T) {
	var b bytes.Buffer
	if err := tarred(&b, moment, program); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(&b)
	if err != nil || z.Name != "" || !z.ModTime.IsZero() {
		t.Fatalf("the header is %+v (%v)", z, err)
	}
	var names []string
	for r := tar.NewReader(z); ; {
		head, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil || !head.ModTime.Equal(moment) || head.Uid != 0 || head.Uname != "" {
			t.Fatalf("%+v (%v)", head, err)
		}
		names = append(names, head.Name)
		if head.Name == "top/tenure" && head.Mode != 0o755 {
			t.Errorf("the program has mode %o", head.Mode)
		}
	}
	if want := []string{"top/", "top/tenure", "top/man/", "top/man/tenure.1"}; !slices.Equal(names, want) {
		t.Errorf("the archive has %q, want %q", names, want)
	}
}

func TestZipped(t *testing.T) {
	var b bytes.Buffer
	if err := zipped(&b, moment, program); err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil || len(z.File) != 2 || !z.File[0].Modified.Equal(moment) || z.File[0].Mode() != 0o755 {
		t.Errorf("%+v (%v)", z, err)
	}
}

// TestSave: an error of the writer is that of the file.
func TestSave(t *testing.T) {
	r := &release{into: t.TempDir()}
	fault := errors.New("fault")
	if err := r.save("a", func(io.Writer) error { return fault }); !errors.Is(err, fault) {
		t.Errorf("%v", err)
	}
	if err := r.save("b", func(w io.Writer) error { _, err := w.Write([]byte("text")); return err }); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(r.into + "/b"); err != nil || string(text) != "text" {
		t.Errorf("%q (%v)", text, err)
	}
}
