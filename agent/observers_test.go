package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
)

// sees returns the answer about election "e", with these parameters.
func (s *scene) sees(parameters string) (now sighting) {
	s.Helper()
	s.decode(http.MethodGet, "/v1/elections/e"+parameters, &now)
	return now
}

// decode makes a request that succeeds.
func (s *scene) decode(method, path string, value any) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.url+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	answer, err := s.http.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(value); err != nil || answer.StatusCode != http.StatusOK {
		s.Fatalf("%s %s: %d, %v", method, path, answer.StatusCode, err)
	}
}

// TestObserver: an observer sees a leader as confirmed only after a renewal, and none after a
// release.
func TestObserver(t *testing.T) {
	play(t, func(s *scene) {
		if now := s.sees(""); now.State != vacant || now.Leader != "" || now.Token != 0 || now.Record != "absent" {
			t.Errorf("before the first leader: %+v", now)
		}
		a := s.campaign(`,"id":"a","address":"host:1"`)
		elected := a.waits("elected")
		s.serve(s.store) // of another agent
		now := s.sees("")
		if now.State != named || now.Leader != "a" || now.Token != elected.Token || now.Address != "host:1" || now.SeenMillis == nil ||
			*now.SeenMillis > 1 || now.LeaseMillis != millisOf(lease) {
			t.Errorf("a record that was found: %+v", now)
		}
		for beat := time.NewTicker(interval / 2); now.State != confirmed; now = s.sees("") {
			<-beat.C
			a.beat()
		}
		a.hangUp()
		hungUp := time.Now()
		for now.Leader != "" {
			now = s.sees("?wait=60s&since=" + now.Version)
		}
		if waited := time.Since(hungUp); now.State != vacant || waited < lease/2 || waited > 2*lease {
			t.Errorf("the lease ran out after %v: %+v", waited, now)
		}
	})
}

// TestObserverInAnOutage: when the store does not answer, neither a vacancy nor a confirmed leader
// is reported, since another candidate may have been elected.
func TestObserverInAnOutage(t *testing.T) {
	play(t, func(s *scene) {
		a := s.campaign(`,"id":"a"`)
		a.waits("elected")
		store := faults.New(&s.store.Polled, 1, faults.Plan{})
		s.serve(store)
		for s.sees("").State != confirmed { // the first agent renews
			time.Sleep(interval / 2)
			a.beat()
		}
		store.Partition()
		a.hangUp()
		for end := time.Now().Add(3 * lease); time.Now().Before(end); time.Sleep(lease / 10) {
			now := s.sees("")
			if now.State == vacant || now.Problem == problemAway && now.State == confirmed {
				t.Fatalf("in an outage: %+v", now)
			}
		}
		if now := s.sees(""); now.State != unknown || now.Problem != problemAway || now.Leader != "" {
			t.Errorf("after a lease: %+v", now)
		}
		store.Heal()
		time.Sleep(lease)
		if now := s.sees(""); now.State != vacant || now.Problem != "" {
			t.Errorf("after the outage: %+v", now)
		}
	})
}

// TestLongPoll: a client that knows the version waits for the next one, and gets the same one if
// nothing changes.
func TestLongPoll(t *testing.T) {
	play(t, func(s *scene) {
		first := s.sees("")
		began := time.Now()
		if same := s.sees("?wait=30s&since=" + first.Version); same.Version != first.Version || time.Since(began) != 30*time.Second {
			t.Errorf("nothing changed: %+v after %v", same, time.Since(began))
		}
		began = time.Now()
		if now := s.sees("?wait=30s&since=other"); now.Version != first.Version || time.Since(began) != 0 {
			t.Errorf("another version: %+v after %v", now, time.Since(began))
		}
		got := make(chan sighting)
		go func() { got <- s.sees("?wait=30s&since=" + first.Version) }()
		time.Sleep(time.Second)
		a := s.campaign(`,"id":"a"`)
		began = time.Now()
		if now := <-got; now.Version == first.Version || time.Since(began) > time.Second {
			t.Errorf("a change: %+v after %v", now, time.Since(began))
		}
		a.hangUp()
	})
}

// news are the events of election "e".
type news struct {
	id string
	sighting
}

func (s *scene) news(lastID string) (<-chan news, context.CancelFunc) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/elections/e/events", nil)
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Last-Event-ID", lastID)
	answer, err := s.http.Do(request) //nolint:bodyclose // the goroutine closes it
	if err != nil || answer.StatusCode != http.StatusOK {
		s.Fatalf("news: %+v, %v", answer, err)
	}
	all := make(chan news, 1000)
	go func() {
		defer close(all)
		defer answer.Body.Close()
		var e news
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				e = news{id: id}
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(data), &e.sighting); err != nil {
					s.Error(err)
				}
				all <- e
			}
		}
	}()
	return all, cancel
}

// TestNews: a stream has each version once, and goes on after the last one that its client saw.
func TestNews(t *testing.T) {
	play(t, func(s *scene) {
		all, cancel := s.news("")
		defer cancel()
		e := <-all
		if e.State != vacant || e.id != e.Version || e.SeenMillis != nil {
			t.Errorf("the first event: %+v", e)
		}
		a := s.campaign(`,"id":"a"`)
		elected := a.waits("elected")
		for e.Token == 0 {
			e = <-all
		}
		if e.Token != elected.Token || e.Leader != "a" {
			t.Errorf("the leader: %+v", e)
		}
		synctest.Wait()
		for len(all) > 0 {
			e = <-all
		}
		again, end := s.news(e.id)
		defer end()
		synctest.Wait()
		if len(again) > 0 {
			t.Errorf("it was seen before: %+v", <-again)
		}
		a.ask(http.MethodDelete, a.path, "")
		for _, stream := range []<-chan news{all, again} {
			if e := <-stream; e.State != vacant || e.Record != "released" {
				t.Errorf("after the release: %+v", e)
			}
		}
	})
}

// TestObserversAreShared: all clients of an election share one observer, which ends when no client
// has asked for a while.
func TestObserversAreShared(t *testing.T) {
	play(t, func(s *scene) {
		for range 20 {
			_, cancel := s.news("")
			defer cancel()
			s.sees("")
		}
		if n := len(s.agent.observers.list()); n != 1 {
			t.Errorf("%d observers", n)
		}
		time.Sleep(10 * idleFor)
		if n := len(s.agent.observers.list()); n != 1 {
			t.Errorf("%d observers while clients listen", n)
		}
	})
	play(t, func(s *scene) {
		store := &guarded{Store: &s.store.Polled}
		s.serve(store)
		s.sees("")
		time.Sleep(idleFor - time.Second)
		s.sees("")
		time.Sleep(idleFor - time.Second)
		if n := len(s.agent.observers.list()); n != 1 {
			t.Errorf("%d observers", n)
		}
		time.Sleep(2 * time.Second)
		if n := len(s.agent.observers.list()); n != 0 {
			t.Errorf("%d observers after a while", n)
		}
		before := store.reads.Load()
		time.Sleep(100 * lease)
		if n := store.reads.Load() - before; n != 0 || before == 0 {
			t.Errorf("%d reads, and %d for no client", before, n)
		}
	})
}

// guarded is a store that counts reads, and may deny them.
type guarded struct {
	driver.Store
	reads atomic.Int64
	deny  atomic.Bool
}

func (g *guarded) Read(ctx context.Context, key string) (driver.Entry, error) {
	g.reads.Add(1)
	if g.deny.Load() {
		return driver.Entry{}, fmt.Errorf("host s3cret: %w", driver.ErrDenied)
	}
	return g.Store.Read(ctx, key)
}

// TestObserverIsDenied: the answer says so, without the error of the store, and goes on when the
// right is granted.
func TestObserverIsDenied(t *testing.T) {
	play(t, func(s *scene) {
		store := &guarded{Store: &s.store.Polled}
		store.deny.Store(true)
		s.serve(store)
		now := s.sees("")
		if now.State != unknown || now.Problem != problemDenied {
			t.Errorf("it is denied: %+v", now)
		}
		store.deny.Store(false)
		if now = s.sees("?wait=1m&since=" + now.Version); now.State != vacant || now.Problem != "" {
			t.Errorf("it is granted: %+v", now)
		}
		store.deny.Store(true)
		if now = s.sees("?wait=1m&since=" + now.Version); now.Problem != problemDenied {
			t.Errorf("it is denied again: %+v", now)
		}
	})
}

// TestElections: the list has the elections of the campaigns and those that are observed.
func TestElections(t *testing.T) {
	play(t, func(s *scene) {
		var all struct{ Elections []row }
		list := func() []row {
			all.Elections = nil
			s.decode(http.MethodGet, "/v1/elections", &all)
			return all.Elections
		}
		if got := list(); len(got) != 0 {
			t.Errorf("without campaigns: %+v", got)
		}
		a := s.campaign(`,"id":"a"`)
		elected := a.waits("elected")
		s.campaign(`,"id":"b"`)
		s.decode(http.MethodGet, "/v1/elections/other", new(sighting))
		got := list()
		if len(got) != 2 || got[0].Election != "e" || got[0].Campaigns != 2 || !got[0].Leads || got[0].State != confirmed ||
			got[0].Token != elected.Token || got[1].Election != "other" || got[1].Campaigns != 0 || got[1].Leads || got[1].State != vacant {
			t.Errorf("the list: %+v", got)
		}
		before := s.sees("")
		if got := list(); got[0].Version != "" || before.Version == "" {
			t.Errorf("it shows what a campaign knows, and the version %q of an observer at %+v", got[0].Version, before)
		}
		time.Sleep(interval + time.Second)
		if got := list(); got[0].Leads || got[0].Campaigns != 0 {
			t.Errorf("after missed heartbeats: %+v", got)
		}
	})
}
