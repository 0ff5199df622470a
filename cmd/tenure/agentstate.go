package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/tenure-go/tenure/agent"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/metrics"
)

// keepState keeps the file of --state-file up to date until the returned function is called, which
// leaves it without campaigns.
func (a *agentFlags) keepState(all *agent.Agent, log *slog.Logger) (end func(), err error) {
	if a.stateFile == "" {
		return func() {}, nil
	}
	if err := replace(a.stateFile, ""); err != nil { // an agent that was killed has left it
		return nil, fault.New("choose a path in a directory that exists and that this user may write", "--state-file %s: %w", a.stateFile, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for campaigns := range all.Watch(ctx) {
			if err := replace(a.stateFile, stateText(campaigns)); err != nil {
				log.Warn("the state file cannot be replaced", "file", a.stateFile, "cause", err)
			}
		}
	}()
	return func() {
		cancel()
		<-ended
		_ = replace(a.stateFile, "")
	}, nil
}

// stateText has one line for each campaign.
func stateText(campaigns []agent.Campaign) string {
	var text strings.Builder
	for _, c := range campaigns {
		state := "following"
		switch {
		case c.Finish:
			state = "finishing"
		case c.Token != 0:
			state = "leading"
		}
		fmt.Fprintf(&text, "%s\t%s\t%d\t%s\n", word(c.Election), state, c.Token, word(c.ID))
	}
	return text.String()
}

// word quotes a text that would break its line.
func word(text string) string {
	if strings.ContainsFunc(text, unicode.IsControl) {
		return strconv.Quote(text)
	}
	return text
}

// replace replaces a file. Readers see the old text or the new one.
func replace(path, text string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.WriteString(text)
	if err = cmp.Or(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// scrapes serves metrics.
func scrapes(set *metrics.Set) http.Handler {
	pages := http.NewServeMux()
	pages.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", metrics.TextType)
		_ = set.WriteText(w) // fails if the client has gone or is too slow
	})
	return pages
}
