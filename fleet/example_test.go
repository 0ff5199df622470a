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
		Spread:    true,
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var led atomic.Int64
	err = f.Run(ctx, func(ctx context.Context, t *tenure.Term) error {
		if led.Add(1) == int64(len(shards)) {
			stop() // as a signal would
		}
		<-ctx.Done() // work on t.Election() until then
		return nil
	})
	fmt.Println("led:", led.Load(), err)
	// Output: led: 4 <nil>
}

// Work that has a loop of its own needs no goroutine for each term.
func Example_stay() {
	f, err := fleet.New(memory.New(), "workers", fleet.Config{
		Election:  tenure.Config{ID: "node-1"},
		Elections: []string{"a"},
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	err = f.Run(ctx, func(_ context.Context, t *tenure.Term) error {
		fmt.Println("begin", t.Election()) // such as: tell the loop
		stop()
		return tenure.Stay(func(_ context.Context, t *tenure.Term) error {
			fmt.Println("end", t.Election()) // and wait until it has let go of it
			return nil
		})
	})
	fmt.Println(err)
	// Output:
	// begin a
	// end a
	// <nil>
}
