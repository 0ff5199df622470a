package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/memory"
)

// lab is a worker in virtual time, over a store within the process.
type lab struct {
	election *tenure.Election
	terms    int // how many have begun
	jobs     int // how many have begun
	stop     context.CancelFunc
	done     chan error
}

// start starts a worker. Its jobs have numbers, from 1.
func start(t *testing.T, job func(ctx context.Context, number int) error) *lab {
	t.Helper()
	e, err := tenure.New(memory.New(), "worker", tenure.Config{ID: "node-1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	l := &lab{election: e, stop: stop, done: make(chan error, 1)}
	w := worker{every: time.Second, begin: func(context.Context, *tenure.Term) (func(context.Context) error, error) {
		l.terms++
		return func(ctx context.Context) error { l.jobs++; return job(ctx, l.jobs) }, nil
	}}
	go func() { l.done <- e.Run(ctx, w.lead) }()
	return l
}

func TestFailedJobIsTriedAgainInTheSameTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := start(t, func(_ context.Context, number int) error {
			if number < maxFailures {
				return errors.New("the database is restarting")
			}
			return nil
		})
		time.Sleep(2 * maxFailures * time.Second)
		l.stop()
		if err := <-l.done; err != nil || l.terms != 1 || l.jobs < maxFailures {
			t.Errorf("%d terms with %d jobs, which end with %v", l.terms, l.jobs, err)
		}
	})
}

func TestWorkerThatKeepsFailingGivesOthersATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := start(t, func(context.Context, int) error { return errors.New("the disk is full") })
		time.Sleep(10 * time.Minute)
		l.stop()
		if err := <-l.done; err != nil || l.terms < 2 || l.jobs > l.terms*maxFailures {
			t.Errorf("%d terms with %d jobs, which end with %v", l.terms, l.jobs, err)
		}
	})
}

func TestShutdownWaitsForTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finished := false
		l := start(t, func(ctx context.Context, _ int) error {
			select {
			case <-time.After(5 * time.Second):
				finished = true
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		time.Sleep(time.Second)
		l.stop()
		if err := <-l.done; err != nil || !finished || l.jobs != 1 {
			t.Errorf("%d jobs, the last one finished: %t, and Run returns %v", l.jobs, finished, err)
		}
	})
}

func TestHealthSaysWhetherItLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := start(t, func(context.Context, int) error { return nil })
		time.Sleep(time.Second)
		answer := httptest.NewRecorder()
		health(l.election).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		if text, _ := io.ReadAll(answer.Body); answer.Code != http.StatusOK || !strings.Contains(string(text), `leader, the leader is "node-1"`) {
			t.Errorf("%d %s", answer.Code, text)
		}
		l.stop()
		<-l.done
	})
}
