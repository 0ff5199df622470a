//go:build integration

package agent

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/agent"
	"github.com/tenure-go/tenure/driver/memory"
)

// BenchmarkSocket reports two medians over a unix socket: the time from the library's event of an
// election until the client has read "elected", and the time of one may-act.
func BenchmarkSocket(b *testing.B) {
	events := make(chan time.Time, 1)
	a, err := agent.New(memory.New(), agent.Config{Election: tenure.Config{OnEvent: func(e tenure.Event) {
		if e.Kind == tenure.EventElected {
			events <- time.Now()
		}
	}}})
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(b.TempDir(), "socket"))
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: a.Handler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", l.Addr().String())
	}}}
	var elected, acts []time.Duration
	for n := 0; b.Loop(); n++ {
		election := fmt.Sprint("http://localhost/v1/elections/e", n)
		stream, err := client.Post(election+"/campaign", "application/json", nil)
		if err != nil {
			b.Fatal(err)
		}
		var name string
		lines := bufio.NewScanner(stream.Body)
		for lines.Scan() && lines.Text() != "event: elected" {
			if _, after, ok := strings.Cut(lines.Text(), `"campaign":"`); ok {
				name, _, _ = strings.Cut(after, `"`)
			}
		}
		read := time.Now()
		elected = append(elected, read.Sub(<-events))
		for range 10 {
			began := time.Now()
			answer, err := client.Get(election + "/campaigns/" + name + "/may-act")
			if err != nil {
				b.Fatal(err)
			}
			answer.Body.Close()
			acts = append(acts, time.Since(began))
		}
		stream.Body.Close()
	}
	median := func(all []time.Duration) float64 {
		slices.Sort(all)
		return all[len(all)/2].Seconds() * 1000
	}
	b.ReportMetric(median(elected), "elected-ms")
	b.ReportMetric(median(acts), "may-act-ms")
}
