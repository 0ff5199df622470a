//go:build unix

package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/peer"
)

func TestPeerTroubleNamesTheFailure(t *testing.T) {
	for _, c := range []struct {
		election string
		err      error
		want     string
	}{
		{"", context.Canceled, "a connection to this process cannot be served"},
		{"", peer.ErrCertificates, "--peer-cert"},
		{"e", context.Canceled, "no reports from the leader over --peer"},
	} {
		var text strings.Builder
		report := peerTrouble(slog.New(slog.NewTextHandler(&text, nil)))
		report(c.election, nil)
		report(c.election, c.err)
		if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, c.want) {
			t.Errorf("of election %q it says\n%s", c.election, got)
		}
	}
}
