package natskv

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// The server answers for its streams' messages, but describes no stream.
func TestReadWhileTheClusterHasNoLeader(t *testing.T) {
	nc := connect(t, startServer(t, withoutJetStream).ClientURL())
	b := newBucket(connection.Borrow(newJetStream(t, nc)), "B")
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
	if e, err := b.Read(wait.Context(t), testKey); outcomeOf(err) != open {
		t.Errorf("before the stream was ever described: %+v, %v", e, err)
	}
	info := streamInfo{Created: time.UnixMicro(1795300000000000), Now: time.UnixMicro(1795300001000000)}
	if err := b.identity.Check(info.Created, info.Now, b.conn.Number()); err != nil {
		t.Fatal(err)
	}
	e, err := b.Read(wait.Context(t), testKey)
	if err != nil || string(e.Value) != "v" || e.Floor != 1795300000000007 || e.Era != 1795300000000000 {
		t.Errorf("afterwards: %+v, %v", e, err)
	}
	if e, err := b.Read(wait.Context(t), "absent"); outcomeOf(err) != open {
		t.Errorf("an absence that no caller vouches for: %+v, %v", e, err)
	}
	if err := b.identity.Check(info.Created, info.Now, b.conn.Number()+1); err != nil {
		t.Fatal(err)
	}
	if e, err := b.Read(wait.Context(t), testKey); outcomeOf(err) != open {
		t.Errorf("over another connection: %+v, %v", e, err)
	}
}
