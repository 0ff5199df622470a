package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// candidate is what New returns for a config without faults. The lease outlasts any stall of the machine.
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

// Who has a loop of its own campaigns for one term at a time. The context is for the waiting alone.
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

// An observer never campaigns.
func ExampleElection_Leaders() {
	store := memory.New()
	term, err := candidate(store, tenure.Config{ID: "node-1", Address: "10.0.0.1:80"}).Campaign(context.Background())
	if err != nil {
		panic(err)
	}
	for leader, err := range candidate(store, tenure.Config{}).Leaders(context.Background()) {
		if err != nil {
			panic(err)
		}
		if !leader.Exists() {
			fmt.Println("nobody leads")
			break
		}
		fmt.Println(leader.ID, "leads at", leader.Address)
		_ = term.Resign(context.Background())
	}
	// Output:
	// node-1 leads at 10.0.0.1:80
	// nobody leads
}

// Do begins nothing for which the lease may be too short.
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
	fmt.Println(term.Do(ctx, time.Minute, work)) // the whole lease
	_ = term.Resign(ctx)
	fmt.Println(errors.Is(term.Do(ctx, 0, work), tenure.ErrLost))
	// Output:
	// working
	// <nil>
	// tenure: not enough of the lease is left
	// true
}

// The soft context says when to finish; under the hard one there is time to.
func ExampleTerm_Context() {
	e := candidate(memory.New(), tenure.Config{ID: "node-1"})
	ctx, stop := context.WithCancel(context.Background())
	save := func(ctx context.Context) { fmt.Println("saved in time:", ctx.Err() == nil) }
	_ = e.Run(ctx, func(soft context.Context, term *tenure.Term) error {
		stop()
		<-soft.Done()
		fmt.Println("asked to finish:", context.Cause(soft))
		save(term.Context())
		return nil
	})
	// Output:
	// asked to finish: tenure: shutting down
	// saved in time: true
}

// A health check asks whether this process is well, which depends on leading in no way: a follower that is called unhealthy
// cannot take over. Whether it leads is a question of its own. A leader that was asked to leave still leads, until its work
// has finished, so ask Term.Err, or compare the state with both; the answer is for people and load balancers, and no
// permission to act.
func ExampleStatus_Health() {
	e := candidate(memory.New(), tenure.Config{ID: "node-1"})
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		status, _ := e.Status()
		if err := status.Health(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		leads := status.State == tenure.StateLeader || status.State == tenure.StateLeaving
		fmt.Fprintf(w, "well, leads: %t, term %d\n", leads, status.Term)
	})
	ask := func() {
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/healthz", http.NoBody))
		fmt.Print(answer.Code, " ", answer.Body)
	}
	ask()
	ctx, stop := context.WithCancel(context.Background())
	_ = e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		ask()
		stop()
		<-ctx.Done() // it is asked to leave, and leads until this function returns
		ask()
		fmt.Println("may act:", term.Err() == nil)
		return nil
	})
	ask()
	// Output:
	// 200 well, leads: false, term 0
	// 200 well, leads: true, term 1
	// 200 well, leads: true, term 1
	// may act: true
	// 200 well, leads: false, term 1
}

// A process that was elected and cannot do the work leaves it to others, and tries again later.
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

// ledger stands for the resource that leaders write to. In SQL, where no row updated means deposed:
//
//	UPDATE ledger SET entry = $1, token = $2 WHERE token <= $2
type ledger struct{ token uint64 }

func (l *ledger) write(token uint64, entry string) {
	if token < l.token {
		fmt.Println("refused:", entry)
		return
	}
	l.token = token
	fmt.Println("written:", entry)
}

// A leader that was frozen may act after its successor. Only the resource can tell, by the token.
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

func (s *shards) Elected(_ context.Context, term *tenure.Term) error {
	s.mine.Store(term.Election(), term)
	return nil
}

func (s *shards) Stop(_ context.Context, term *tenure.Term) error {
	s.mine.Delete(term.Election())
	return nil
}

func (s *shards) leads(name string) bool {
	term, ok := s.mine.Load(name)
	return ok && term.(*tenure.Term).Err() == nil
}

// Many elections in one process share memory and need no goroutine each.
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
