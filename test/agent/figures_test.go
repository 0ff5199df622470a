//go:build integration

package agent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/agent"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/test/internal/command"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

func TestMain(m *testing.M) {
	natsd.Main()
	os.Exit(m.Run())
}

// overSocket returns a client of the agent that serves a unix socket.
func overSocket(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 10,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
}

// leader is a client that leads.
type leader struct {
	path   string // of the campaign
	lines  *bufio.Scanner
	stream *http.Response
}

// lead begins a campaign, and returns when the client has read that it leads.
func lead(b *testing.B, client *http.Client, election string) leader {
	url := "http://localhost/v1/elections/" + election
	stream, err := client.Post(url+"/campaign", "application/json", strings.NewReader(`{"heartbeatMillis":60000}`)) //nolint:bodyclose // end closes it
	if err != nil {
		b.Error(err)
		return leader{}
	}
	l := leader{lines: bufio.NewScanner(stream.Body), stream: stream}
	for l.lines.Scan() && l.lines.Text() != "event: elected" {
		if _, after, ok := strings.Cut(l.lines.Text(), `"campaign":"`); ok {
			name, _, _ := strings.Cut(after, `"`)
			l.path = url + "/campaigns/" + name
		}
	}
	return l
}

func (l *leader) end() { _ = l.stream.Body.Close() }

// mayAct asks whether the client may act, and returns how long the answer took.
func (l *leader) mayAct(b *testing.B, client *http.Client) time.Duration {
	began := time.Now()
	answer, err := client.Get(l.path + "/may-act")
	if err != nil {
		b.Fatal(err)
	}
	drain(answer)
	if answer.StatusCode != http.StatusOK {
		b.Fatalf("may-act: %d", answer.StatusCode)
	}
	return time.Since(began)
}

// drain reads an answer, so that its connection serves the next request.
func drain(answer *http.Response) {
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
}

// beat sends heartbeats, reads the stream, and returns when ctx ends.
func (l *leader) beat(ctx context.Context, b *testing.B, client *http.Client, every, after time.Duration) {
	go func() {
		for l.lines.Scan() {
		}
	}()
	select {
	case <-time.After(after):
	case <-ctx.Done():
	}
	for number := 1; ctx.Err() == nil; number++ {
		answer, err := client.Post(l.path+"/heartbeat", "application/json", strings.NewReader(fmt.Sprintf(`{"number":%d}`, number)))
		if err != nil {
			b.Error(err)
			return
		}
		drain(answer)
		if answer.StatusCode != http.StatusOK {
			b.Errorf("heartbeat %d of %s: %d", number, l.path, answer.StatusCode)
			return
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
		}
	}
}

func median(all []time.Duration) float64 {
	slices.Sort(all)
	return all[len(all)/2].Seconds() * 1000
}

// BenchmarkCampaigns reports the memory and the processor time of a real agent for 1,000 programs
// that lead, each in an election of its own, and the median time of one may-act. The lease is 15 s,
// and heartbeats come each 4.5 s.
func BenchmarkCampaigns(b *testing.B) {
	tenure := command.Build(b)
	b.Run("nats", func(b *testing.B) { campaigns(b, tenure, natsd.Alone(b).URL()+"/ELECTIONS") })
	b.Run("sqlite", func(b *testing.B) { campaigns(b, tenure, "sqlite:"+filepath.Join(b.TempDir(), "elections.db")) })
}

func campaigns(b *testing.B, tenure, store string) {
	const programs, every, measured = 1000, 4500 * time.Millisecond, 30 * time.Second
	socket := filepath.Join(b.TempDir(), "socket")
	p := command.Start(b, tenure, "agent", "--store", store, "--create", "--json", "--listen", "unix:"+socket)
	p.Await(`"(serving)"`)
	client := overSocket(socket)
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		var all sync.WaitGroup
		leaders := make([]leader, programs)
		var elected sync.WaitGroup
		for i := range leaders {
			elected.Add(1)
			all.Go(func() {
				l := &leaders[i]
				*l = lead(b, client, fmt.Sprint("e", i))
				elected.Done()
				l.beat(ctx, b, client, every, time.Duration(i)*every/programs)
			})
		}
		elected.Wait()
		time.Sleep(every)
		pid := p.PID()
		_, before, err := machine.Of(pid)
		if err != nil {
			b.Fatal(err)
		}
		var acts []time.Duration
		for end := time.Now().Add(measured); time.Now().Before(end); time.Sleep(measured / 300) {
			acts = append(acts, leaders[len(acts)%programs].mayAct(b, client))
		}
		used, after, err := machine.Of(pid)
		if err != nil {
			b.Fatal(err)
		}
		cancel()
		all.Wait()
		for i := range leaders {
			leaders[i].end()
		}
		b.ReportMetric(float64(used.Resident)/1e6, "MB")
		b.ReportMetric(100*(after-before).Seconds()/measured.Seconds(), "%-of-a-core")
		b.ReportMetric(median(acts), "may-act-ms")
	}
}

// BenchmarkSocket reports two medians over a unix socket, with one program at a time and a store in
// memory: the time from the library's event of an election until the client has read "elected", and
// the time of one may-act.
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
	socket, err := net.Listen("unix", filepath.Join(b.TempDir(), "socket"))
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: a.Handler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(socket) }()
	defer server.Close()
	client := overSocket(socket.Addr().String())
	var elected, acts []time.Duration
	for n := 0; b.Loop(); n++ {
		l := lead(b, client, fmt.Sprint("e", n))
		read := time.Now()
		elected = append(elected, read.Sub(<-events))
		for range 10 {
			acts = append(acts, l.mayAct(b, client))
		}
		l.end()
	}
	b.ReportMetric(median(elected), "elected-ms")
	b.ReportMetric(median(acts), "may-act-ms")
}
