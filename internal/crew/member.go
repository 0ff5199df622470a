package crew

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"sync"
)

// Settings reads the settings with which a process was hired: the first line of in. It returns the
// rest of in. Settings are not arguments of the command line, which all users of the machine can
// read. The error is io.EOF if there is no line, as when a person runs the program.
func Settings(in io.Reader, settings any) (rest *bufio.Reader, err error) {
	rest = bufio.NewReader(in)
	line, err := rest.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	return rest, json.Unmarshal(line, settings)
}

// Until returns a context that ends when in ends: then the program that has started this process
// has died or wants it to end, and the process must not stay behind.
func Until(ctx context.Context, in io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return ctx, cancel
}

// Reporter writes reports. Several goroutines may use it.
type Reporter struct {
	mu  sync.Mutex
	out *json.Encoder
}

// NewReporter returns a Reporter that writes to out.
func NewReporter(out io.Writer) *Reporter { return &Reporter{out: json.NewEncoder(out)} }

// Send writes a report in one call, so that a killed process leaves no incomplete report. It
// ignores errors: they mean that the reader is gone, and that the standard input ends, too.
func (r *Reporter) Send(report any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.out.Encode(report)
}
