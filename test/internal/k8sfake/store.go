package k8sfake

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// change is a write to the store. Type is that of a watch: ADDED, MODIFIED or DELETED.
type change struct {
	Type   string `json:"type"`
	Key    string `json:"key"` // NAMESPACE/NAME
	Object lease  `json:"object"`
}

// store is a log of changes with one revision for all keys, in a file. A killed process keeps all
// of it.
type store struct {
	file *os.File // nil: the store is in memory

	mu       sync.Mutex
	revision uint64
	present  map[string]lease
	// recent are the changes since the start. A watch cannot begin before the first of them.
	recent []change
	oldest uint64
	more   chan struct{} // closed and replaced with each change
}

func openStore(dir string) (*store, error) {
	s := &store{revision: 1, oldest: 1, present: map[string]lease{}, more: make(chan struct{})}
	if dir == "" {
		return s, nil
	}
	data := filepath.Join(dir, "etcd")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(data, "log"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	s.file = f
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			s.oldest = s.revision
			return s, f.Truncate(s.length(f, int64(len(line))))
		}
		if err != nil {
			return nil, err
		}
		var c change
		if err := json.Unmarshal(line, &c); err != nil {
			return nil, err
		}
		s.apply(c)
	}
}

// length returns the length of the file without a line that a killed process has left unfinished.
func (s *store) length(f *os.File, unfinished int64) int64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return info.Size() - unfinished
}

// apply is called under the lock.
func (s *store) apply(c change) {
	s.revision = c.Object.revision()
	if s.present[c.Key] = c.Object; c.Type == "DELETED" {
		delete(s.present, c.Key)
	}
}

// write calls decide with the present state of a key, which may be nil. It returns the next state,
// or a refusal, and whether the write is a deletion.
func (s *store) write(key string, decide func(now lease) (next lease, err error)) (lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.present[key]
	next, err := decide(now)
	if err != nil {
		return nil, err
	}
	c := change{Type: "MODIFIED", Key: key, Object: next}
	switch {
	case now == nil:
		c.Type = "ADDED"
	case next == nil:
		c.Type, c.Object = "DELETED", now.clone()
	case next.equal(now):
		return now, nil // no write, as in Kubernetes
	}
	c.Object.setRevision(s.revision + 1)
	line, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	if s.file != nil {
		if _, err := s.file.Write(append(line, '\n')); err != nil {
			return nil, err
		}
	}
	s.apply(c)
	s.recent = append(s.recent, c)
	close(s.more)
	s.more = make(chan struct{})
	return c.Object, nil
}

func (s *store) get(key string) (lease, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.present[key], s.revision
}

// list returns the objects of a namespace.
func (s *store) list(namespace string) (all []lease, revision uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for key := range s.present {
		if strings.HasPrefix(key, namespace+"/") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		all = append(all, s.present[key])
	}
	return all, s.revision
}

// after returns the changes after a revision, the present revision, and a channel that is closed
// with the next change. It returns false if the revision is too old.
func (s *store) after(revision uint64) (changes []change, now uint64, more <-chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, _ := slices.BinarySearchFunc(s.recent, revision+1, func(c change, r uint64) int {
		return int(int64(c.Object.revision() - r))
	})
	return s.recent[i:], s.revision, s.more, revision >= s.oldest
}
