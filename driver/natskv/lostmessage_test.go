//go:build integration

package natskv

import (
	"testing"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv/internal/natstest"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// A message is lost on its way, and then a message of another key arrives. The consumer must
// notice the gap, and its successor must deliver the lost message.
func TestLostMessageIsDeliveredLater(t *testing.T) {
	for _, c := range []struct {
		name   string
		before int // messages in the bucket when the watch begins
		after  int // messages delivered before one is lost
		opts   []Option
		why    string
	}{
		{"empty", 0, 1, nil, "the first link has no sequence to begin after, but it has delivered a message"},
		{"used", 1, 0, nil, "the first link begins after the last message of the bucket"},
		{"created", 0, 0, []Option{Create()}, "the bucket does not count from 1: even an empty one has a sequence"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			if c.opts != nil {
				name := newBucketName()
				openStore(t, f.js, name, c.opts...)
				kv, err := f.js.KeyValue(wait.Context(t), name)
				f.must(err)
				f.kv = kv
			}
			for range c.before {
				f.put("earlier", "0")
			}
			proxy := natstest.StartProxy(t, f.server.ClientURL())
			store := openStore(t, newJetStream(t, connect(t, proxy.URL())), f.kv.Bucket())
			got := make(chan string, 9)
			for _, key := range []string{testKey, "first", "later"} {
				see := func(e driver.Entry) { got <- key + "=" + string(e.Value) }
				if _, err := store.Watch(wait.Context(t), key, see); err != nil {
					t.Fatal(err)
				}
			}
			for range c.after {
				f.put("first", "1")
				if pushed := <-got; pushed != "first=1" {
					t.Fatalf("pushed %s", pushed)
				}
			}
			lost := proxy.Lose("$KV." + f.kv.Bucket() + "." + testKey)
			f.put(testKey, "2")
			<-lost
			f.put("later", "3")
			for {
				select {
				case pushed := <-got:
					if pushed == testKey+"=2" {
						return
					}
				case <-wait.Context(t).Done():
					t.Fatalf("the lost message is never delivered: %s", c.why)
				}
			}
		})
	}
}
