package natskv

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// pushed is a message as a stream pushes it to a consumer.
func pushed(consumerSeq, streamSeq int) *nats.Msg {
	return &nats.Msg{
		Subject: "$KV.B." + testKey,
		Reply:   fmt.Sprintf("$JS.ACK.KV_B.c.1.%d.%d.1700000000000000000.0", streamSeq, consumerSeq),
		Data:    []byte("v"),
	}
}

func status(code, reply string, headers ...string) *nats.Msg {
	m := &nats.Msg{Reply: reply, Header: nats.Header{"Status": {code}}}
	for i := 0; i < len(headers); i += 2 {
		m.Header[headers[i]] = []string{headers[i+1]}
	}
	return m
}

// TestConsumer gives a consumer the messages that a server may push.
func TestConsumer(t *testing.T) {
	var answers atomic.Int32
	nc, _ := play(t, func(*nats.Msg) []byte { answers.Add(1); return nil })
	for _, c := range []struct {
		name    string
		pushes  []*nats.Msg
		want    []uint64 // floors
		lost    bool
		answers int
		why     string
	}{
		{"messages", []*nats.Msg{pushed(1, 4), pushed(2, 9)}, []uint64{4, 9}, false, 0, "numbered without a gap"},
		{"gap", []*nats.Msg{pushed(1, 4), pushed(3, 9), pushed(4, 10)}, []uint64{4}, true, 0,
			"the next link begins after the first: after a later one it would miss the change in the gap, perhaps of another key"},
		{"gap at the start", []*nats.Msg{pushed(2, 9)}, []uint64{9}, true, 0, "one was dropped on the way"},
		{"heartbeat", []*nats.Msg{pushed(1, 4), status("100", "", "Nats-Last-Consumer", "1")}, []uint64{4}, false, 0,
			"nothing is missing"},
		{"heartbeat after a gap", []*nats.Msg{pushed(1, 4), status("100", "", "Nats-Last-Consumer", "2")}, []uint64{4}, true, 0,
			"the last one was dropped, and no later one shows it"},
		{"flow control", []*nats.Msg{status("100", "answers")}, nil, false, 1, "without the answer the server stops pushing"},
		{"stalled", []*nats.Msg{status("100", "", "Nats-Consumer-Stalled", "answers")}, nil, false, 1,
			"the first answer got lost"},
		{"deleted", []*nats.Msg{status("409", "")}, nil, true, 0, "nothing more will come"},
		{"stranger", []*nats.Msg{{Data: []byte("v")}}, nil, false, 0, "anybody may publish to an inbox"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []uint64
			con := &consumer{stored: "$KV.B.", lost: make(chan struct{}), quiet: time.AfterFunc(time.Hour, func() {})}
			con.deliver = func(key string, e driver.Entry) {
				if key != testKey {
					t.Errorf("key %q", key)
				}
				got = append(got, e.Floor)
			}
			answers.Store(0)
			sub, err := nc.SubscribeSync("unused")
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range c.pushes {
				m.Sub = sub
				con.receive(m)
			}
			lost := false
			select {
			case <-con.lost:
				lost = true
			default:
			}
			if !slices.Equal(got, c.want) || lost != c.lost {
				t.Errorf("got %d, lost %v; want %d, %v: %s", got, lost, c.want, c.lost, c.why)
			}
			wait.Until(t, c.why, func() bool { return int(answers.Load()) == c.answers })
			_ = sub.Unsubscribe()
		})
	}
}
