package tenure_test

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// TestHistoryChanged: a follower says when it saw that the store's history had changed. Work that
// the leader recorded beside the election depends on it.
func TestHistoryChanged(t *testing.T) {
	all := scenes{}
	for what, change := range map[string]func(s *scene, first []byte, mark *driver.Entry){
		"":                           func(*scene, []byte, *driver.Entry) {},
		"the store was recreated":    func(_ *scene, _ []byte, mark *driver.Entry) { mark.Era = 2 },
		"later writes may be missed": func(_ *scene, _ []byte, mark *driver.Entry) { mark.Unproven = true },
		"an older state is put back": func(s *scene, first []byte, _ *driver.Entry) { s.store.Put(key, first) },
		"the record is gone":         func(s *scene, _ []byte, _ *driver.Entry) { s.store.Delete(key) },
	} {
		all["changed: "+what] = func(s *scene) {
			mark := driver.Entry{Era: 1}
			follower := s.over(&hooked{Store: s.store, read: func(e *driver.Entry) {
				e.Era, e.Unproven = mark.Era, mark.Unproven
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
			change(s, first, &mark)
			time.Sleep(2 * lease)
			got := follower.Status().HistoryChanged
			if want := what != ""; want == got.IsZero() || want && got.Before(at) {
				s.Errorf("changed at %v; the change was at %v", got, at)
			}
		}
	}
	all.play(t, polled)
}
