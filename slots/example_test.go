package slots_test

import (
	"context"
	"fmt"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/slots"
)

// A member holds one of three slots for as long as its context is open.
func Example() {
	m, err := slots.New(memory.New(), "crawl", slots.Config{Slots: 3})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = m.Run(ctx, tenure.Lead(func(ctx context.Context, t *tenure.Term) error {
		n := slots.Number(t)
		fmt.Println("this process has a slot:", t.Election() == slots.Election("crawl", n))
		cancel() // as on SIGTERM
		<-ctx.Done()
		return nil
	}))
	fmt.Println(err)
	// Output:
	// this process has a slot: true
	// <nil>
}
