package agent

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/metrics"
)

// TestWatch: the states follow the campaigns, and a client that misses a heartbeat leads no more.
func TestWatch(t *testing.T) {
	play(t, func(s *scene) {
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		states := make(chan []Campaign, 100)
		go func() {
			for all := range s.agent.Watch(ctx) {
				states <- all
			}
		}()
		last := func() (all []Campaign) {
			for synctest.Wait(); len(states) > 0; {
				all = <-states
			}
			return all
		}
		if all := last(); len(all) != 0 {
			t.Errorf("without campaigns: %+v", all)
		}
		b := s.campaign(`,"id":"b"`)
		elected := b.waits("elected")
		if all := last(); !slices.Equal(all, []Campaign{{"e", "b", elected.Token, false}}) {
			t.Errorf("the leader: %+v", all)
		}
		a := s.campaign(`,"id":"a"`)
		a.beat()
		b.ask(http.MethodPost, b.path+"/hand-over", "{}")
		b.waits("finish")
		if all := last(); !slices.Equal(all, []Campaign{{"e", "a", 0, false}, {"e", "b", elected.Token, true}}) {
			t.Errorf("it is asked to finish: %+v", all)
		}
		time.Sleep(interval + time.Second)
		if all := last(); len(all) != 0 {
			t.Errorf("after missed heartbeats: %+v", all)
		}
	})
}

// TestAgentMetrics: the metrics count campaigns, leaders and missed heartbeats.
func TestAgentMetrics(t *testing.T) {
	play(t, func(s *scene) {
		set := metrics.NewSummary()
		s.serveAs(s.store, tenure.Config{Lease: lease, Metrics: set})
		wants := func(lines ...string) {
			t.Helper()
			var text strings.Builder
			if err := set.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			for _, line := range lines {
				if !strings.Contains(text.String(), "\n"+line+"\n") {
					t.Errorf("no line %q in\n%s", line, text.String())
				}
			}
		}
		wants("tenure_agent_campaigns 0", "tenure_agent_leading 0", "tenure_agent_missed_heartbeats_total 0")
		s.campaign(`,"id":"a"`).waits("elected")
		b := s.campaign(`,"id":"b"`)
		wants("tenure_agent_campaigns 2", "tenure_agent_leading 1")
		b.ask(http.MethodDelete, b.path, "")
		time.Sleep(interval + time.Second)
		wants("tenure_agent_campaigns 0", "tenure_agent_leading 0", "tenure_agent_missed_heartbeats_total 1")
	})
}
