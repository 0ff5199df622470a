package kafka

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/compat/neli"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// process is a goNELI program with a diary of its events.
type process struct {
	neli.Neli
	t          testing.TB
	name       string
	connection []kgo.Opt

	mu    sync.Mutex
	diary []string
}

func (p *process) barrier(e neli.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.diary = append(p.diary, e.String())
}

func (p *process) expect(events ...neli.Event) {
	p.t.Helper()
	var want []string
	for _, e := range events {
		want = append(want, e.String())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.diary, want) {
		p.t.Errorf("%s got the events %v, want %v", p.name, p.diary, want)
	}
	p.diary = nil
}

// begin starts a process with these brokers.
func begin(t testing.TB, name string, brokers string, change ...func(*neli.Config)) *process {
	t.Helper()
	p := &process{t: t, name: name}
	cfg := neli.Config{
		KafkaConfig:   neli.KafkaConfigMap{"bootstrap.servers": brokers, "heartbeat.interval.ms": 500},
		LeaderGroupID: "group", LeaderTopic: "topic", Name: name, Scribe: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&cfg)
	}
	p.connection = cfg.ClientOptions
	var err error
	if p.Neli, err = neli.New(cfg, p.barrier); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// mustLead pulses until it leads.
func (p *process) mustLead(within time.Duration) {
	p.t.Helper()
	if leads, err := p.Pulse(within); !leads || err != nil {
		p.t.Fatalf("%s does not lead within %v: %v", p.name, within, err)
	}
}

// idle pulses without leading.
func (p *process) idle(during time.Duration) {
	p.t.Helper()
	if leads, err := p.Pulse(during); leads || err != nil {
		p.t.Fatalf("%s leads: %v, %v", p.name, leads, err)
	}
}

func (p *process) mustClose() {
	p.t.Helper()
	if err := p.Close(); err != nil || p.State() != neli.Closed || p.IsLeader() {
		p.t.Errorf("%s after Close: %v, %v, leader %v", p.name, err, p.State(), p.IsLeader())
	}
}

type beginning = func(name string, change ...func(*neli.Config)) *process

// inTheBubble runs processes and brokers in virtual time.
func inTheBubble(t *testing.T, test func(t *testing.T, c *cluster, begin beginning), opts ...kfake.Opt) {
	t.Helper()
	inBubble(t, 1, func(t *testing.T, c *cluster) {
		test(t, c, func(name string, change ...func(*neli.Config)) *process {
			virtual := func(cfg *neli.Config) {
				delete(cfg.KafkaConfig, "bootstrap.servers")
				cfg.ClientOptions = c.direct()
				cfg.Configure = func(c *tenure.Config) { c.Clock = clock.Standard{} }
			}
			return begin(t, name, "", append([]func(*neli.Config){virtual}, change...)...)
		})
	}, opts...)
}

func TestNeliTakesTurns(t *testing.T) {
	inTheBubble(t, func(t *testing.T, _ *cluster, begin beginning) {
		a := begin("a")
		a.mustLead(patience)
		b, c := begin("b"), begin("c")
		for range 3 {
			b.idle(10 * time.Second)
			c.idle(10 * time.Second)
		}
		if !a.IsLeader() {
			t.Fatal("leadership moved when others joined")
		}
		first := a.Token()
		began := time.Now()
		a.mustClose()
		a.expect(neli.LeaderAcquired{}, neli.LeaderRevoked{})
		next := either(b, c)
		took := time.Since(began)
		t.Log("the next leads ", took, " after the call of Close")
		if took > 5*time.Second || next.Token() <= first {
			t.Errorf("after %v, token %d after %d", took, next.Token(), first)
		}
		if _, err := a.Pulse(time.Second); !errors.Is(err, neli.ErrNonLivePulse) {
			t.Errorf("after Close: %v", err)
		}
		next.expect(neli.LeaderAcquired{})
		b.mustClose()
		c.mustClose()
	})
}

// either pulses both until one leads.
func either(a, b *process) *process {
	for {
		for _, p := range []*process{a, b} {
			if leads, err := p.Pulse(10 * time.Millisecond); err != nil {
				p.t.Fatal(err)
			} else if leads {
				return p
			}
		}
	}
}

// TestNeliRequestsPerMinute counts the requests of ten candidates.
func TestNeliRequestsPerMinute(t *testing.T) {
	inTheBubble(t, func(t *testing.T, c *cluster, begin beginning) {
		var all []*process
		slow := func(cfg *neli.Config) { delete(cfg.KafkaConfig, "heartbeat.interval.ms") }
		for i := range 10 {
			p := begin(fmt.Sprint(i), slow)
			if _, err := p.Background(func() { time.Sleep(100 * time.Millisecond) }); err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
		time.Sleep(time.Minute)
		h := c.Fault(kfake.Fault{Observe: true, Count: -1})
		time.Sleep(time.Minute)
		t.Log("ten candidates ask ", h.Hits(), " times a minute")
		if h.Hits() > 1334 || h.Hits() < 10 {
			t.Errorf("%d requests a minute", h.Hits())
		}
		h.Remove()
		for _, p := range all {
			p.mustClose()
		}
	})
}
