package demo

import (
	"bytes"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
)

// noon is one time on both clocks.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(millis int) stamp.Time { return stamp.Time(time.Duration(millis) * time.Millisecond) }

func wall(millis int) time.Time { return noon.Add(time.Duration(millis) * time.Millisecond) }

// until is a writer that calls found once the text was written.
type until struct {
	text  string
	found func()

	mu  sync.Mutex
	all bytes.Buffer
}

func (u *until) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all.Write(p)
	if strings.Contains(u.all.String(), u.text) {
		u.found()
	}
	return len(p), nil
}
