package kafkalog

import (
	"context"
	"time"

	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// maxAsked is how many times brokers are asked the same at a time: two silent ones may come up
	// again as seeds.
	maxAsked = 6
	// mostPatience is longer than a healthy broker takes.
	mostPatience = 250 * time.Millisecond
)

// reply is the answer of one broker.
type reply struct {
	answer kmsg.Response
	err    error
}

// anyone asks one broker a question that all of them can answer, and another one while there is no
// answer: a frozen broker keeps its connections and sends nothing, and the client gives it up much
// later. The client chooses the brokers in turn.
func (w *wire) anyone(ctx context.Context, question func() kmsg.Request) (kmsg.Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	replies := make(chan reply, maxAsked)
	ask := func() {
		answer, err := w.client.Request(ctx, question())
		replies <- reply{answer, err}
	}
	another := time.NewTicker(w.patience())
	defer another.Stop()
	asked, failed := 0, 0
	for {
		if asked == failed { // no broker is being asked
			asked++
			go ask()
		}
		select {
		case r := <-replies:
			failed++
			if r.err == nil || broker.IsRefusal(r.err) || failed == maxAsked || ctx.Err() != nil {
				return r.answer, r.err
			}
		case <-another.C:
			if asked < maxAsked {
				asked++
				go ask()
			}
		}
	}
}

// patience is how long a broker may take before it is doubted, which costs little.
func (w *wire) patience() time.Duration { return min(w.timeout/8, mostPatience) }
