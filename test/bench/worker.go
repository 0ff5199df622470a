package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// workerVariable tells a process to be a worker.
const workerVariable = "TENURE_BENCH_WORKER"

// identity is what a worker is told when it is started.
type identity struct{ ID, URL string }

// worker is a process that takes part in elections, over one connection.
type worker struct {
	id     string
	say    func(report)
	js     jetstream.JetStream
	store  *natskv.Store
	asker  *asking.Asker
	cancel context.CancelFunc
	runs   []<-chan error
	meter  meter
}

// workerMain turns a process that was started as a worker into one. It lives no longer than its parent.
func workerMain() {
	encoded := os.Getenv(workerVariable)
	if encoded == "" {
		return
	}
	w := &worker{say: reporter(os.Stdout)}
	if err := w.work(encoded, os.Stdin); err != nil {
		w.say(report{What: failed, Error: err.Error()})
		os.Exit(1)
	}
	os.Exit(0)
}

func (w *worker) work(encoded string, in io.Reader) error {
	var me identity
	if err := json.Unmarshal([]byte(encoded), &me); err != nil {
		return err
	}
	w.id = me.ID
	w.asker = asking.Start(func(election string, token uint64, stamps []int64) {
		w.say(report{What: acted, Election: election, Token: token, Acts: stamps})
	})
	if err := w.connect(me.URL); err != nil {
		return err
	}
	for commands := json.NewDecoder(in); ; {
		var c command
		if err := commands.Decode(&c); err != nil {
			return unless(errors.Is(err, io.EOF), err)
		}
		if err := w.obey(c); err != nil {
			return fmt.Errorf("%s: %w", c.Do, err)
		}
	}
}

func unless(ok bool, err error) error {
	if ok {
		return nil
	}
	return err
}

func (w *worker) connect(url string) error {
	tell := func(*nats.Conn) { w.say(report{What: connected, At: machine.Now()}) }
	nc, err := nats.Connect(url, nats.Name(w.id), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.ReconnectHandler(tell))
	if err != nil {
		return err
	}
	tell(nc)
	w.js, err = jetstream.New(nc)
	return err
}

func (w *worker) obey(c command) error {
	switch c.Do {
	case start:
		return w.start(c)
	case stop:
		w.stop()
	case use:
		w.say(report{What: used, Usage: w.meter.use()})
	}
	return nil
}

// start opens the bucket, unless that was done for the last start, and campaigns.
func (w *worker) start(c command) error {
	w.say(report{What: opening, At: machine.Now()})
	if w.store != nil {
		_ = w.store.Close()
	}
	var err error
	if w.store, err = natskv.Open(context.Background(), w.js, c.Bucket); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	for _, name := range c.Elections {
		if err := w.campaign(ctx, name, c); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) campaign(ctx context.Context, name string, c command) error {
	var store driver.Store = w.store
	cfg := tenure.Config{ID: w.id, Lease: c.Lease}
	if !c.Quiet {
		store = observed{w.store, w.say}
		cfg.OnEvent = w.asker.Hear
	}
	e, err := tenure.New(store, name, cfg)
	if err != nil {
		return err
	}
	run, err := e.Start(ctx, func(ctx context.Context, t *tenure.Term) error {
		w.say(report{What: leads, Election: name, Token: t.Token(), At: w.asker.Enter(name, t, c.Ask)})
		<-ctx.Done()
		return nil
	})
	if err != nil {
		return err
	}
	w.runs = append(w.runs, run)
	go w.tell(ctx, e)
	return nil
}

// tell reports when the candidate has seen the record.
func (w *worker) tell(ctx context.Context, e *tenure.Election) {
	if _, err := e.Wait(ctx, func(s tenure.Status) bool { return s.Known }); err == nil {
		w.say(report{What: following, Election: e.Name(), At: machine.Now()})
	}
}

func (w *worker) stop() {
	if w.cancel != nil {
		w.cancel()
	}
	for _, run := range w.runs {
		if err := <-run; err != nil {
			w.say(report{What: failed, Error: err.Error()})
		}
	}
	w.runs = nil
	w.say(report{What: stopped, At: machine.Now()})
}
