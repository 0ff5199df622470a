package tenure_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// candidate returns an election. Its lease is longer than any stall of the machine that runs the
// examples.
func candidate(store driver.Store, cfg tenure.Config) *tenure.Election {
	cfg.Lease = time.Minute
	e, err := tenure.New(store, "billing", cfg)
	if err != nil {
		panic(err)
	}
	return e
}

func Example() {
	store := memory.New() // in production: natskv.Open, s3object.FromEnvironment or kafkalog.Open
	ctx, stop := context.WithCancel(context.Background())
	e, err := tenure.New(store, "billing", tenure.Config{ID: "node-1"})
	if err != nil {
		panic(err)
	}
	err = e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		fmt.Println("leading, token", term.Token())
		stop()       // as a signal would
		<-ctx.Done() // stopped, asked to hand over, or no longer the leader
		fmt.Println(context.Cause(ctx))
		return nil
	})
	fmt.Println("done:", err)
	// Output:
	// leading, token 1
	// tenure: shutting down
	// done: <nil>
}

// A program with a loop of its own campaigns for one term at a time. The context bounds only the
// wait.
func ExampleElection_Campaign() {
	e := candidate(memory.New(), tenure.Config{ID: "node-1"})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	term, err := e.Campaign(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("leading:", term.Err() == nil)
	fmt.Println("released:", term.Resign(context.Background()) == nil) // the work has stopped
	fmt.Println(term.Err())
	// Output:
	// leading: true
	// released: true
	// tenure: leadership lost: lease was released
}

// An observer never campaigns. Watch also yields changes that are not about the leader, such as
// that the store begins to push.
func ExampleElection_Watch() {
	store := memory.New()
	term, err := candidate(store, tenure.Config{ID: "node-1", Address: "10.0.0.1:80"}).Campaign(context.Background())
	if err != nil {
		panic(err)
	}
	var last tenure.Leader
	for status, err := range candidate(store, tenure.Config{}).Watch(context.Background()) {
		if err != nil {
			panic(err)
		}
		if status.Leaderless() {
			fmt.Println("nobody leads")
			break
		}
		if !status.Leader.Equal(last) {
			last = status.Leader
			fmt.Println(last.ID, "leads at", last.Address)
			_ = term.Resign(context.Background())
		}
	}
	// Output:
	// node-1 leads at 10.0.0.1:80
	// nobody leads
}

// Do starts an action only if enough of the lease is left for it.
func ExampleTerm_Do() {
	term, err := candidate(memory.New(), tenure.Config{ID: "node-1"}).Campaign(context.Background())
	if err != nil {
		panic(err)
	}
	work := func(context.Context) error {
		fmt.Println("working")
		return nil
	}
	ctx := context.Background()
	fmt.Println(term.Do(ctx, 5*time.Second, work))
	err = term.Do(ctx, time.Minute, work) // the whole lease
	if errors.Is(err, tenure.ErrTooLate) {
		fmt.Println(err)
	}
	_ = term.Resign(ctx)
	fmt.Println(errors.Is(term.Do(ctx, 0, work), tenure.ErrLost))
	// Output:
	// working
	// <nil>
	// tenure: not enough of the lease is left
	// true
}

// The context of the work ends when it should finish. The context of the lease leaves time to save.
func ExampleTerm_Context() {
	e := candidate(memory.New(), tenure.Config{ID: "node-1"})
	ctx, stop := context.WithCancel(context.Background())
	save := func(ctx context.Context) { fmt.Println("saved in time:", ctx.Err() == nil) }
	_ = e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		stop()
		<-ctx.Done()
		fmt.Println("asked to finish:", context.Cause(ctx))
		save(term.LeaseContext())
		return nil
	})
	// Output:
	// asked to finish: tenure: shutting down
	// saved in time: true
}

// Code deep inside of the work finds the term in its context.
func ExampleFromContext() {
	write := func(ctx context.Context) {
		if term, ok := tenure.FromContext(ctx); ok && term.Err() == nil {
			fmt.Println("writing for", term.Election())
		}
	}
	term, err := candidate(memory.New(), tenure.Config{ID: "node-1"}).Campaign(context.Background())
	if err != nil {
		panic(err)
	}
	write(term.Context())
	_ = term.Resign(context.Background())
	write(term.Context())
	// Output: writing for billing
}

// The cause says why the work has to end.
func ExampleTerm_Context_cause() {
	why := func(cause error) string {
		switch {
		case errors.Is(cause, tenure.ErrShutdown):
			return "this program ends"
		case errors.Is(cause, tenure.ErrHandOver), errors.Is(cause, tenure.ErrIneligible):
			return "another process is to lead"
		case errors.Is(cause, tenure.ErrOverdue):
			return "the work takes too long to finish"
		case errors.Is(cause, tenure.ErrExpired), errors.Is(cause, tenure.ErrDeposed):
			return "the term was lost"
		}
		return "an operator should look: " + cause.Error()
	}
	e := candidate(memory.New(), tenure.Config{ID: "node-1"})
	term, err := e.Campaign(context.Background())
	if err != nil {
		panic(err)
	}
	e.SetEligible(false) // as after a failed health check
	<-term.Context().Done()
	fmt.Println(why(context.Cause(term.Context())))
	_ = term.Resign(context.Background())
	// Output: another process is to lead
}

// A page for people shows the state in words.
func ExampleState() {
	words := map[tenure.State]string{
		tenure.StateIdle:      "takes no part",
		tenure.StateCandidate: "stands by",
		tenure.StateLeader:    "leads",
		tenure.StateLeaving:   "finishes its work, then hands over",
		tenure.StateEnded:     "leads no longer; its work is about to stop",
		tenure.StateOverdue:   "leads no longer, but its work did not stop: restart it",
		tenure.StateReleasing: "hands over",
	}
	e := candidate(memory.New(), tenure.Config{ID: "node-1"})
	fmt.Println(e.ID(), words[e.Status().State])
	term, err := e.Campaign(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(e.ID(), words[e.Status().State])
	_ = term.Resign(context.Background())
	// Output:
	// node-1 takes no part
	// node-1 leads
}

// A health check asks whether this process is well. That does not depend on leading: a follower
// that is restarted as unhealthy cannot take over. The answer also says whether it leads, for
// people and load balancers. That is no permission to act later.
func ExampleStatus_Health() {
	e := candidate(memory.New(), tenure.Config{ID: "node-1"})
	health := func(w http.ResponseWriter, _ *http.Request) {
		status := e.Status()
		if err := status.Health(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		if term, ok := e.Term(); ok && term.Err() == nil {
			fmt.Fprintln(w, "well, leads with token", term.Token())
			return
		}
		fmt.Fprintln(w, "well, follows")
	}
	ask := func() {
		answer := httptest.NewRecorder()
		health(answer, httptest.NewRequest(http.MethodGet, "/healthz", http.NoBody))
		fmt.Print(answer.Code, " ", answer.Body)
	}
	ask()
	ctx, stop := context.WithCancel(context.Background())
	_ = e.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
		stop()
		<-ctx.Done() // asked to finish; it leads until this function returns
		ask()
		return nil
	})
	ask()
	// Output:
	// 200 well, follows
	// 200 well, leads with token 1
	// 200 well, follows
}

// A pool of workers drains when the context of the work ends: it takes no new jobs and finishes
// those that it has. The jobs use the context of the lease, which stays open for
// Config.FinishWithin.
func ExampleElection_Run_drain() {
	e := candidate(memory.New(), tenure.Config{ID: "node-1", FinishWithin: 30 * time.Second})
	ctx, stop := context.WithCancel(context.Background())
	jobs := make(chan int)
	go func() {
		for n := range 4 {
			jobs <- n
		}
		stop() // as a signal would
	}()
	var finished atomic.Int64
	work := func(lease context.Context, _ int) {
		if lease.Err() == nil {
			finished.Add(1)
		}
	}
	err := e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		var pool sync.WaitGroup
		for range 2 {
			pool.Go(func() {
				for ctx.Err() == nil {
					select {
					case n := <-jobs:
						work(term.LeaseContext(), n)
					case <-ctx.Done():
					}
				}
			})
		}
		pool.Wait() // the lease is released when this function returns
		return nil
	})
	fmt.Println("finished:", finished.Load(), err)
	// Output: finished: 4 <nil>
}

// A write that carries the token is safe even if this process is paused just before it. The table
// has a column for the highest token that wrote to the row.
func ExampleTerm_Token_sql() {
	var db *sql.DB // the database of the resource, not the store of the election
	charge := func(ctx context.Context, term *tenure.Term, account string, cents int) error {
		result, err := db.ExecContext(ctx,
			"UPDATE accounts SET cents = cents - $1, token = $2 WHERE id = $3 AND token <= $2",
			cents, int64(term.Token()), account)
		if err != nil {
			return err
		}
		if rows, err := result.RowsAffected(); err != nil || rows == 1 {
			return err
		}
		return fmt.Errorf("account %s: a newer leader has written", account)
	}
	_ = charge // call it from the function that Run calls
}

// Hand over before a deployment, so that clients do not wait for a lease to expire.
func ExampleElection_HandOver() {
	store := memory.New()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	work := func(ctx context.Context, _ *tenure.Term) error {
		<-ctx.Done()
		return nil
	}
	old := candidate(store, tenure.Config{ID: "node-1"})
	go func() { _ = old.Run(ctx, work) }()
	leads := func(id string) func(tenure.Status) bool {
		return func(s tenure.Status) bool { return s.Leader.ID == id }
	}
	_, _ = old.Wait(ctx, leads("node-1"))
	next := candidate(store, tenure.Config{ID: "node-2"})
	go func() { _ = next.Run(ctx, work) }()

	operator := candidate(store, tenure.Config{ID: "deployment"}) // it never campaigns
	if err := operator.HandOver(ctx, "node-2"); err != nil {
		panic(err)
	}
	status, err := operator.Wait(ctx, leads("node-2"))
	fmt.Println(status.Leader.ID, "leads", err)
	// Output: node-2 leads <nil>
}

// A process that was elected and cannot do the work leaves it to others, and campaigns again later.
func ExampleErrDecline() {
	e := candidate(memory.New(), tenure.Config{
		ID:     "node-1",
		Tuning: tenure.Tuning{Backoff: func(int) time.Duration { return 10 * time.Millisecond }},
	})
	ready := false
	err := e.Run(context.Background(), func(context.Context, *tenure.Term) error {
		if !ready {
			fmt.Println("not ready")
			ready = true // by the next time
			return tenure.ErrDecline
		}
		fmt.Println("the work is done")
		return nil
	})
	fmt.Println(err)
	// Output:
	// not ready
	// the work is done
	// <nil>
}

// ledger stands for the resource that leaders write to.
type ledger struct{ token uint64 }

func (l *ledger) write(token uint64, entry string) {
	if token < l.token {
		fmt.Println("refused:", entry)
		return
	}
	l.token = token
	fmt.Println("written:", entry)
}

// A leader that was paused may write after its successor. The resource refuses it by its token.
func ExampleTerm_Token() {
	store, ctx := memory.New(), context.Background()
	var l ledger
	older, err := candidate(store, tenure.Config{ID: "node-1"}).Campaign(ctx)
	if err != nil {
		panic(err)
	}
	l.write(older.Token(), "first of node-1")
	_ = older.Resign(ctx)
	newer, err := candidate(store, tenure.Config{ID: "node-2"}).Campaign(ctx)
	if err != nil {
		panic(err)
	}
	l.write(newer.Token(), "first of node-2")
	l.write(older.Token(), "late one of node-1")
	_ = newer.Resign(ctx)
	// Output:
	// written: first of node-1
	// written: first of node-2
	// refused: late one of node-1
}

// shards is a table of what this process leads, for other parts of the program to look at.
type shards struct{ mine sync.Map }

func (s *shards) Elected(_ context.Context, term *tenure.Term) (stop func(context.Context) error, err error) {
	s.mine.Store(term.Election(), term)
	return func(context.Context) error {
		s.mine.Delete(term.Election())
		return nil
	}, nil
}

func (s *shards) leads(name string) bool {
	term, ok := s.mine.Load(name)
	return ok && term.(*tenure.Term).Err() == nil
}

// Many elections in one process share memory, and a Handler needs no goroutine for each.
func ExampleGroup() {
	group, err := tenure.NewGroup(memory.New(), tenure.Config{ID: "node-1"})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	work := &shards{}
	ended := make(chan error, 1)
	go func() { ended <- group.Run(ctx, work, "shard-0", "shard-1") }()
	for !work.leads("shard-1") {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("leads shard-1")
	stop()
	fmt.Println("ended:", <-ended)
	fmt.Println("leads shard-1:", work.leads("shard-1"))
	// Output:
	// leads shard-1
	// ended: <nil>
	// leads shard-1: false
}
