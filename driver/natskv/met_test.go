package natskv

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

func TestMet(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(1795300000, 7).Add(time.Duration(seconds) * time.Second) }
	info := func(created, now int) streamInfo { return streamInfo{Created: at(created), Now: at(now)} }
	for _, c := range []struct {
		name  string
		then  []streamInfo
		alien bool
		why   string
	}{
		{"the same", []streamInfo{info(0, 100), info(0, 200)}, false, "nothing happened"},
		{"made anew", []streamInfo{info(0, 100), info(150, 200)}, false, "it follows the old one"},
		{"made anew by a clock that is late", []streamInfo{info(0, 100), info(50, 200)}, false, "clocks of a cluster may differ a little"},
		{"another", []streamInfo{info(0, 1000), info(500, 1100)}, true, "both were there at 500"},
		{"an older one", []streamInfo{info(0, 100), info(-500, 200)}, true, "both were there at 0"},
		{"by a nanosecond", []streamInfo{info(0, 1000), {Created: at(0).Add(1), Now: at(1001)}}, true, "time is the name"},
		{"an older answer", []streamInfo{info(0, 1000), info(0, 10), info(500, 1100)}, true, "what was seen once was seen"},
		{"anew, then the old one", []streamInfo{info(0, 100), info(200, 300), info(0, 400)}, true, "it was put back, or is elsewhere"},
		{"old servers", []streamInfo{{}, {}}, false, "they do not say"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m met
			var err error
			for _, i := range c.then {
				err = m.greet(i, 0)
			}
			if alien := errors.Is(err, ErrTwoClusters); alien != c.alien || !alien && err != nil {
				t.Errorf("%v; want an alien %v: %s", err, c.alien, c.why)
			}
		})
	}
}

// TestReadWhileTheClusterHasNoLeader: it answers for its streams' messages, and describes no stream.
func TestReadWhileTheClusterHasNoLeader(t *testing.T) {
	nc := connect(t, startServer(t, withoutJetStream).ClientURL())
	b := newBucket(newJetStream(t, nc), "B")
	respond(t, nc, "$JS.API.STREAM.INFO.KV_B", `{"error":{"code":503,"err_code":10008,"description":"told so"}}`)
	messages, err := nc.Subscribe("$JS.API.STREAM.MSG.GET.KV_B", func(m *nats.Msg) {
		answer := `{"message":{"seq":7,"data":"dg=="}}`
		if strings.Contains(string(m.Data), "absent") {
			answer = `{"error":{"code":404,"err_code":10037}}`
		}
		_ = m.Respond([]byte(answer))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = messages.Unsubscribe() }()
	if e, err := b.Read(testContext(t), testKey); outcomeOf(err) != open {
		t.Errorf("before the stream was ever described: %+v, %v", e, err)
	}
	info := streamInfo{Created: time.UnixMicro(1795300000000000), Now: time.UnixMicro(1795300001000000)}
	if err := b.met.greet(info, nc.Stats().Reconnects); err != nil {
		t.Fatal(err)
	}
	e, err := b.Read(testContext(t), testKey)
	if err != nil || string(e.Value) != "v" || e.Floor != 1795300000000007 || e.Era != 1795300000000000 {
		t.Errorf("afterwards: %+v, %v", e, err)
	}
	if e, err := b.Read(testContext(t), "absent"); outcomeOf(err) != open {
		t.Errorf("an absence, for which nobody vouches: %+v, %v", e, err)
	}
	if err := b.met.greet(info, nc.Stats().Reconnects+1); err != nil {
		t.Fatal(err)
	}
	if e, err := b.Read(testContext(t), testKey); outcomeOf(err) != open {
		t.Errorf("over another connection: %+v, %v", e, err)
	}
}
