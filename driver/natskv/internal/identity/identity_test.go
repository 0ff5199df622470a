package identity

import (
	"errors"
	"testing"
	"time"
)

// TestStream: a stream that existed while another one was in use is not its successor.
func TestStream(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(1795300000, 7).Add(time.Duration(seconds) * time.Second) }
	type visit struct{ created, now time.Time }
	info := func(created, now int) visit { return visit{at(created), at(now)} }
	for _, c := range []struct {
		name  string
		then  []visit
		alien bool
		why   string
	}{
		{"the same", []visit{info(0, 100), info(0, 200)}, false, "nothing happened"},
		{"recreated", []visit{info(0, 100), info(150, 200)}, false, "it follows the old one"},
		{"recreated by a clock that is late", []visit{info(0, 100), info(50, 200)}, false, "clocks of a cluster may differ a little"},
		{"another", []visit{info(0, 1000), info(500, 1100)}, true, "both were there at 500"},
		{"an older one", []visit{info(0, 100), info(-500, 200)}, true, "both were there at 0"},
		{"by a nanosecond", []visit{info(0, 1000), {at(0).Add(1), at(1001)}}, true, "time is the name"},
		{"an older answer", []visit{info(0, 1000), info(0, 10), info(500, 1100)}, true, "what was seen once was seen"},
		{"a new one, then the old one", []visit{info(0, 100), info(200, 300), info(0, 400)}, true, "it was put back, or is elsewhere"},
		{"old servers", []visit{{}, {}}, false, "they do not say"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Stream
			var err error
			for _, v := range c.then {
				err = s.Check(v.created, v.now, 0)
			}
			if alien := errors.Is(err, ErrTwoClusters); alien != c.alien || !alien && err != nil {
				t.Errorf("%v; want an alien %v: %s", err, c.alien, c.why)
			}
		})
	}
}

// TestConfirm: a new connection is checked once, before a write may rely on earlier reads.
func TestConfirm(t *testing.T) {
	var s Stream
	first := time.Unix(1795300000, 7)
	over := func(connection uint64) func() uint64 { return func() uint64 { return connection } }
	looks := 0
	finding := func(created time.Time, connection uint64) func() (time.Time, error) {
		return func() (time.Time, error) {
			looks++
			return created, s.Check(created, created, connection)
		}
	}
	for _, c := range []struct {
		name       string
		connection uint64
		created    time.Time
		refused    bool
		looks      int
	}{
		{"the first connection", 0, first, false, 0},
		{"a new one", 1, first, false, 1},
		{"the same", 1, first, false, 1},
		{"to a stream that was recreated", 2, first.Add(time.Hour), true, 2},
		{"after that", 2, first.Add(time.Hour), false, 2},
	} {
		err := s.Confirm(over(c.connection), finding(c.created, c.connection))
		if (err != nil) != c.refused || looks != c.looks {
			t.Errorf("%s: %v after %d looks; want %d, refused %v", c.name, err, looks, c.looks, c.refused)
		}
	}
	if err := s.Confirm(over(3), func() (time.Time, error) { return time.Time{}, ErrTwoClusters }); !errors.Is(err, ErrTwoClusters) {
		t.Errorf("a look that fails: %v", err)
	}
}
