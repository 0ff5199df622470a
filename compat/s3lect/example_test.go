package s3lect_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/compat/s3lect"
	"github.com/tenure-go/tenure/driver/memory"
)

func ExampleNewS3Elector() {
	elector, err := s3lect.NewS3Elector(s3lect.S3ElectorOptions{
		Config: &s3lect.ElectorConfig{
			LockfilePath:        "leader/my-group.json",
			ServerID:            "server-001",
			ServerAddr:          "10.0.1.42:8443",
			OnAcquireLeadership: func(context.Context) error { fmt.Println("to work"); return nil },
			OnLoseLeadership:    func(context.Context) error { fmt.Println("work has stopped"); return nil },
		},
		Store:  memory.New(), // or Storage, written for S3lect
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	if err := elector.Start(ctx); err != nil {
		fmt.Println(err)
	}
	if err := elector.WaitForLeadership(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println(elector.LeaderID(), elector.IsLeader())
	if err := elector.Stop(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// to work
	// server-001 true
	// work has stopped
}

// Candidates with Tenure's own API work while S3lect processes still take part.
func ExampleLegacy() {
	store, err := s3lect.Legacy(memory.NewPolled(), s3lect.LegacyConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	election, err := tenure.New(store, "leader/my-group.json", tenure.Config{ID: "server-001"})
	fmt.Println(election.Name(), err)
	// Output: leader/my-group.json <nil>
}
