package natsd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
)

// said is a server's message to its parent: its addresses when it is ready, or the reason why it
// cannot start.
type said struct {
	URL     string
	Monitor string
	Refusal refusal
}

// refusal is the reason that a server gives for not starting.
type refusal string

func (r refusal) Error() string { return string(r) }

// ear hears what a server says on its output.
type ear struct {
	mu   sync.Mutex
	text []byte
}

// Write adds to the text.
func (e *ear) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.text = append(e.text, b...)
	return len(b), nil
}

// said returns the first message, or none while it is not complete.
func (e *ear) said() (s said) {
	e.mu.Lock()
	defer e.mu.Unlock()
	_ = json.NewDecoder(bytes.NewReader(e.text)).Decode(&s)
	return s
}

// hears returns an error until the server has said its addresses.
func (e *ear) hears(where *said) error {
	if *where = e.said(); where.URL == "" {
		return errors.New("it says nothing")
	}
	return nil
}

// speaker is the logger of a server. A server goes on after a fatal error unless its logger exits.
type speaker struct{}

// Fatalf reports to the process that waits for the server, and to the terminal.
func (speaker) Fatalf(format string, v ...any) {
	reason := fmt.Sprintf(format, v...)
	fmt.Fprintln(os.Stderr, "natsd:", reason)
	_ = json.NewEncoder(os.Stdout).Encode(said{Refusal: refusal(reason)})
	os.Exit(1)
}

func (speaker) Noticef(string, ...any) {}
func (speaker) Warnf(string, ...any)   {}
func (speaker) Errorf(string, ...any)  {}
func (speaker) Debugf(string, ...any)  {}
func (speaker) Tracef(string, ...any)  {}
