package fleet_test

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/fleet"
)

func Example() {
	store := memory.New() // in production: natskv.Open(...)
	var shards []string
	for i := range 4 {
		shards = append(shards, fmt.Sprintf("shards/%d", i))
	}
	f, err := fleet.New(store, "workers", fleet.Config{
		Election:  tenure.Config{ID: "node-1"},
		Elections: shards,
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var led atomic.Int64
	err = f.Run(ctx, tenure.Lead(func(ctx context.Context, t *tenure.Term) error {
		if led.Add(1) == int64(len(shards)) {
			stop() // as a signal would
		}
		<-ctx.Done() // work on t.Election() until then
		return nil
	}))
	fmt.Println("led:", led.Load(), err)
	// Output: led: 4 <nil>
}

// loop is work that needs no goroutine for each term, such as a loop that serves all elections.
type loop struct{ stop func() }

func (l loop) Elected(_ context.Context, t *tenure.Term) (stop func(context.Context) error, err error) {
	fmt.Println("begin", t.Election()) // such as: send it to the loop
	l.stop()
	return func(context.Context) error {
		fmt.Println("end", t.Election()) // and wait until the loop has finished with it
		return nil
	}, nil
}

func Example_handler() {
	f, err := fleet.New(memory.New(), "workers", fleet.Config{
		Election:  tenure.Config{ID: "node-1"},
		Elections: []string{"a"},
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	fmt.Println(f.Run(ctx, loop{stop}))
	// Output:
	// begin a
	// end a
	// <nil>
}
