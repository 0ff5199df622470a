package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// workerVariable tells a process to be a worker.
const workerVariable = "TENURE_BENCH_WORKER"

// identity is what a worker is told when it is started.
type identity struct {
	ID, URL string
	// Brokers are addresses of Kafka, which are dialled Via others if that is set.
	Brokers []string          `json:",omitempty"`
	Via     map[string]string `json:",omitempty"`
	// Own: the URLs are those of NATS servers, and there is a connection for the elections alone.
	Own bool `json:",omitempty"`
	// Objects: the URL is that of object storage, otherwise of NATS. The rest is for objects.
	Objects bool `json:",omitempty"`
	// Peers tell one another what the leader wrote.
	Peers bool `json:",omitempty"`
	// Wall is how far the time of day is wrong, and Judge has each read looked at by a rule that relies on it.
	Wall  time.Duration `json:",omitempty"`
	Judge bool          `json:",omitempty"`
}

// source is where a worker has its stores from.
type source interface {
	// open returns the store for a start. That of NATS ends the last one of the same bucket.
	open(c command) (driver.Store, error)
	// configure adds what the source knows to the configuration of an election, which is campaigned for until the context ends.
	configure(ctx context.Context, c command, election string, cfg *tenure.Config) error
}

// tallier is a source that counts its requests.
type tallier interface {
	// requests are all until now, by their kinds.
	requests() map[string]int
}

// worker is a process that takes part in elections.
type worker struct {
	id     string
	say    func(report)
	source source
	asker  *asking.Asker
	cancel context.CancelFunc
	ctx    context.Context // of the campaigns; nil while there are none
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
	var err error
	if w.source, err = connect(me, w.say); err != nil {
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

func connect(me identity, say func(report)) (source, error) {
	switch {
	case len(me.Brokers) > 0:
		return openLogs(me, say), nil
	case me.Objects:
		return openObjects(me, say), nil
	}
	return dialNATS(me, say)
}

func (w *worker) obey(c command) error {
	switch c.Do {
	case start:
		return w.start(c)
	case sail:
		return w.sail(c)
	case stop:
		w.stop()
	case consume:
		return w.source.(*logSource).consume(c)
	case use:
		w.say(report{What: used, Usage: w.usage()})
	}
	return nil
}

// start campaigns, beside what it campaigns for already.
func (w *worker) start(c command) error {
	w.say(report{What: opening, At: machine.Now()})
	store, err := w.source.open(c)
	if err != nil {
		return err
	}
	if w.ctx == nil {
		w.ctx, w.cancel = context.WithCancel(context.Background())
	}
	for i, name := range shuffled(c) {
		if i > 0 {
			time.Sleep(c.Spread / time.Duration(len(c.Elections)))
		}
		if err := w.campaign(w.ctx, store, name, c); err != nil {
			return err
		}
	}
	w.meter.take() // what was before is no rest to wait for
	return nil
}

func (w *worker) usage() *usage {
	u := w.meter.use()
	if t, ok := w.source.(tallier); ok {
		u.Requests = t.requests()
	}
	return u
}

func shuffled(c command) []string {
	if c.Spread > 0 {
		rand.Shuffle(len(c.Elections), func(i, j int) { c.Elections[i], c.Elections[j] = c.Elections[j], c.Elections[i] })
	}
	return c.Elections
}

func (w *worker) campaign(ctx context.Context, store driver.Store, name string, c command) error {
	cfg := tenure.Config{ID: w.id, Lease: c.Lease}
	if !c.Quiet {
		cfg.OnEvent = w.hear
	}
	if err := w.source.configure(ctx, c, name, &cfg); err != nil {
		return err
	}
	e, err := tenure.New(store, name, cfg)
	if err != nil {
		return err
	}
	run := make(chan error, 1)
	go func() {
		run <- e.Run(ctx, func(ctx context.Context, t *tenure.Term) error {
			w.say(report{What: leads, Election: name, Token: t.Token(), At: w.asker.Enter(name, t, c.Ask)})
			<-ctx.Done()
			return nil
		})
	}()
	w.runs = append(w.runs, run)
	go w.tell(ctx, e)
	return nil
}

func (w *worker) hear(e tenure.Event) {
	if e.Kind == tenure.EventLost {
		w.say(report{What: lost, Election: e.Election, Token: e.Term, At: machine.Now(), Error: e.Cause.Error(),
			Expired: errors.Is(e.Cause, tenure.ErrExpired)})
	}
	w.asker.Hear(e)
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
	w.runs, w.ctx = nil, nil
	w.say(report{What: stopped, At: machine.Now()})
}
