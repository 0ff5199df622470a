package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path"
	"time"
)

// entry is a file of an archive or a package. Directories above it are made where the format needs
// them.
type entry struct {
	path    string
	content []byte
	mode    os.FileMode
}

// tarred writes a compressed archive. All its files have the same time and belong to root.
func tarred(w io.Writer, at time.Time, entries []entry) error {
	z := gzip.NewWriter(w) // its header has neither a name nor a time
	if err := untimed(z, at, entries); err != nil {
		return err
	}
	return z.Close()
}

// untimed writes an archive without compression.
func untimed(w io.Writer, at time.Time, entries []entry) error {
	t := tar.NewWriter(w)
	made := map[string]bool{".": true, "/": true}
	for _, e := range entries {
		if err := parents(t, at, path.Dir(e.path), made); err != nil {
			return err
		}
		head := &tar.Header{Name: e.path, Mode: int64(e.mode.Perm()), Size: int64(len(e.content)), ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if err := t.WriteHeader(head); err != nil {
			return err
		}
		if _, err := t.Write(e.content); err != nil {
			return err
		}
	}
	return t.Close()
}

func parents(t *tar.Writer, at time.Time, dir string, made map[string]bool) error {
	if made[dir] {
		return nil
	}
	made[dir] = true
	if err := parents(t, at, path.Dir(dir), made); err != nil {
		return err
	}
	return t.WriteHeader(&tar.Header{Name: dir + "/", Mode: 0o755, ModTime: at, Typeflag: tar.TypeDir, Format: tar.FormatPAX})
}

// zipped writes an archive for Windows.
func zipped(w io.Writer, at time.Time, entries []entry) error {
	z := zip.NewWriter(w)
	for _, e := range entries {
		head := &zip.FileHeader{Name: e.path, Method: zip.Deflate, Modified: at}
		head.SetMode(e.mode)
		f, err := z.CreateHeader(head)
		if err != nil {
			return err
		}
		if _, err := f.Write(e.content); err != nil {
			return err
		}
	}
	return z.Close()
}

// compressed returns a text as gzip writes it without a name and a time.
func compressed(text []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}
