//go:build integration

package chaos

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/natsd"
	"github.com/tenure-go/tenure/test/internal/relay"
)

// key is the election of every test.
const key = "billing"

// field is an election on a server process, with candidates that come and go. At the end, no two
// leaders may have led at once, and no token may have been below an earlier one.
type field struct {
	testing.TB
	lease time.Duration
	renew time.Duration // 0: the default
	// vouched lets candidates assume that an empty bucket is the first of its name, so that they
	// need not wait for a lease.
	vouched bool
	server  *natsd.Server
	js      jetstream.JetStream // the operator's
	kv      jetstream.KeyValue
	store   driver.Store
	book    witness.Book
	struck  uint64 // the token of the leader that the fault hits

	elected crew.Journal[elected]

	mu     sync.Mutex
	causes []error // the causes of events
}

// elected is the beginning of a term.
type elected struct {
	by    *candidate
	token uint64
	term  *tenure.Term
}

// newField registers judge first, so that it runs last.
func newField(t testing.TB, lease time.Duration, change ...func(*jetstream.KeyValueConfig)) *field {
	t.Helper()
	f := &field{TB: t, lease: lease}
	t.Cleanup(f.judge)
	f.server = startServer(t)
	f.js = connect(t, f.server.URL())
	f.kv = addBucket(t, f.js, change...)
	f.store = openStore(t, f.js, f.kv.Bucket())
	return f
}

func (f *field) judge() {
	v := f.book.Judge()
	if !v.Safe() {
		f.Error(v)
	}
	f.Logf("%d terms, %d answers of yes", v.Terms, v.Acts)
}

// candidate takes part over its own connection, which can be cut.
type candidate struct {
	id    string
	relay *relay.Relay
	leave func() // ends Run and waits for it
}

// join adds candidates and returns them.
func (f *field) join(n int, wrap ...func(driver.Store) driver.Store) []*candidate {
	f.Helper()
	var all []*candidate
	for i := range n {
		all = append(all, f.joinOne(fmt.Sprintf("c%d", i), wrap...))
	}
	return all
}

func (f *field) joinOne(id string, wrap ...func(driver.Store) driver.Store) *candidate {
	f.Helper()
	c := &candidate{id: id, relay: startRelay(f, f.server)}
	var opts []natskv.Option
	if f.vouched {
		opts = append(opts, natskv.Pristine())
	}
	var store driver.Store = openStore(f, connect(f, c.relay.URL()), f.kv.Bucket(), opts...)
	for _, w := range wrap {
		store = w(store)
	}
	e, err := tenure.New(store, key, tenure.Config{ID: id, Lease: f.lease, Tuning: tenure.Tuning{Renew: f.renew}, OnEvent: f.onEvent})
	must(f, err)
	f.run(c, e)
	return c
}

func (f *field) onEvent(e tenure.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.Cause != nil {
		f.causes = append(f.causes, e.Cause)
	}
}

// run lets the candidate campaign until it leaves or the test ends.
func (f *field) run(c *candidate, e *tenure.Election) {
	asker := asking.Start(func(election string, token uint64, stamps []int64) { f.book.Add(election, c.id, token, stamps...) })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- e.Run(ctx, func(ctx context.Context, t *tenure.Term) error {
			asker.Enter(key, t, asking.ByTerm)
			f.elected.Add(elected{c, t.Token(), t})
			<-ctx.Done()
			return nil
		})
	}()
	c.leave = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			f.Errorf("Run of %s: %v", c.id, err)
		}
		asker.Stop()
	})
	f.Cleanup(c.leave)
}

// leader waits for a leader with a token above the given one, and returns the latest.
func (f *field) leader(above uint64) elected {
	f.Helper()
	what := fmt.Sprintf("a leader with a token above %d", above)
	_, err := f.elected.Await(wait.Context(f), 0, what, func(e elected) bool { return e.token > above })
	must(f, err)
	last, _ := f.elected.Last()
	return last
}

// leading returns the terms that are not over.
func (f *field) leading() (all []*tenure.Term) {
	for _, e := range f.elected.Since(0) {
		if e.term.Err() == nil {
			all = append(all, e.term)
		}
	}
	return all
}

// latest returns the highest token so far.
func (f *field) latest() uint64 {
	var token uint64
	for _, e := range f.elected.Since(0) {
		token = max(token, e.token)
	}
	return token
}

// record returns the record in the store, as the operator sees it.
func (f *field) record() driver.Entry {
	f.Helper()
	var e driver.Entry
	wait.Until(f, "the operator reads the record", func() (ok bool) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		var err error
		e, err = f.store.Read(ctx, key)
		return err == nil
	})
	return e
}
