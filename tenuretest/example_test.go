package tenuretest_test

import (
	"context"
	"fmt"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/tenuretest"
)

// bill is the code under test: it works while it leads, then winds up if it still may.
func bill(ctx context.Context, store driver.Store, cfg tenure.Config, says chan<- string) error {
	e, err := tenure.New(store, "billing", cfg)
	if err != nil {
		return err
	}
	return e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		says <- "billing"
		<-ctx.Done()
		if err := term.Err(); err != nil {
			says <- "stopping: " + err.Error()
			return nil
		}
		says <- "finishing: " + context.Cause(ctx).Error()
		return nil
	})
}

// script replaces a *testing.T, which an example does not have.
type script struct{ after []func() }

func (s *script) Helper()              {}
func (s *script) Cleanup(after func()) { s.after = append(s.after, after) }

func (s *script) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (s *script) end() {
	for _, after := range s.after {
		after()
	}
}

func Example() {
	t := &script{}
	defer t.end()
	stage := tenuretest.New(t, "billing")

	ctx, stop := context.WithCancel(context.Background())
	says, done := make(chan string), make(chan error)
	go func() { done <- bill(ctx, stage.Store("node-1"), stage.Config("node-1"), says) }()

	stage.Elect("node-1")
	fmt.Println(<-says)
	stage.Ask()
	fmt.Println(<-says)

	stage.Elect("node-1")
	fmt.Println(<-says)
	stage.Fence()
	fmt.Println(<-says)
	fmt.Println(stage.Leader().ID, "leads")

	stop()
	fmt.Println(<-done)
	// Output:
	// billing
	// finishing: hand-over was asked for by "rival"
	// billing
	// stopping: tenure: leadership lost: lease ran out before a renewal was confirmed
	// rival leads
	// <nil>
}
