package tenure_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// TestHistoryChanged: a follower says when it saw that the store's history had changed. Work that
// the leader recorded beside the election depends on it.
func TestHistoryChanged(t *testing.T) {
	all := scenes{}
	usual, recreated := driver.Entry{Era: 1}, driver.Entry{Era: 2}
	unproven := driver.Entry{Era: 1, Unproven: true}
	for what, change := range map[string]func(s *scene, first []byte) driver.Entry{
		"":                           func(*scene, []byte) driver.Entry { return usual },
		"the store was recreated":    func(*scene, []byte) driver.Entry { return recreated },
		"later writes may be missed": func(*scene, []byte) driver.Entry { return unproven },
		"an older state is put back": func(s *scene, b []byte) driver.Entry { s.store.Put(key, b); return usual },
		"the record is gone":         func(s *scene, _ []byte) driver.Entry { s.store.Delete(key); return usual },
	} {
		all["changed: "+what] = func(s *scene) {
			var mark atomic.Pointer[driver.Entry]
			mark.Store(&usual)
			follower := s.over(&hooked{Store: s.store, read: func(e *driver.Entry) {
				e.Era, e.Unproven = mark.Load().Era, mark.Load().Unproven
			}}).new("b")
			a, _ := s.elect("a")
			defer follower.observe()()
			follower.sees("a")
			first := s.read().Value
			_ = a.end() // a release and another leader are no change of the history
			line, far := s.faulty()
			far.elect("c")
			follower.sees("c")
			line.Partition() // c would put a release where its record was
			if got := follower.Status().HistoryChanged; !got.IsZero() {
				s.Errorf("changed at %v, and nothing was", got)
			}
			at := time.Now()
			after := change(s, first)
			mark.Store(&after)
			time.Sleep(2 * lease)
			got := follower.Status().HistoryChanged
			if want := what != ""; want == got.IsZero() || want && got.Before(at) {
				s.Errorf("changed at %v; the change was at %v", got, at)
			}
		}
	}
	all.play(t, polled)
}
