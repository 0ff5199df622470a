package s3lect

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver/faults"
)

// oldOne is an S3lect process, as its documentation and its known faults describe it. It reads the
// lockfile every 5 s. If the lockfile names it and the time there is less than 15 s old by its own
// clock, it leads and renews. If the lockfile names another process, it follows. Otherwise, or
// without a lockfile, it writes its own name under the ETag that it read. It resigns by writing the
// zero time. A failed read changes nothing. So it may go on leading while it cannot reach the
// store.
type oldOne struct {
	id   string
	line faults.Store
	skew time.Duration

	mu      sync.Mutex
	leading bool
	since   time.Time // when it began to lead, in true time
	frozen  time.Time // it is stopped until then
	refused time.Time // its writes fail until then
	decline bool      // its acquire hook fails next time

	die, resign chan struct{}
	done        chan struct{}
}

const (
	oldEvery   = 5 * time.Second
	oldTimeout = 15 * time.Second
)

var errRefused = errors.New("slow down")

func startOld(id string, line faults.Store, skew, first time.Duration) *oldOne {
	o := &oldOne{
		id: id, line: line, skew: skew,
		die: make(chan struct{}), resign: make(chan struct{}), done: make(chan struct{}),
	}
	go func() {
		defer close(o.done)
		time.Sleep(first)
		o.loop()
	}()
	return o
}

func (o *oldOne) loop() {
	tick := time.NewTicker(oldEvery)
	defer tick.Stop()
	for {
		o.cycle()
		select {
		case <-o.die:
			o.lead(false)
			return
		case <-o.resign:
			if o.leads() {
				o.lead(false)
				o.write(time.Time{}, o.named())
			}
			return
		case <-tick.C:
			o.thaw(tick)
		}
	}
}

// thaw waits until the process is not frozen, and then for its next cycle.
func (o *oldOne) thaw(tick *time.Ticker) {
	for {
		o.mu.Lock()
		d := time.Until(o.frozen)
		o.mu.Unlock()
		if d <= 0 {
			return
		}
		time.Sleep(d)
		tick.Reset(oldEvery)
		<-tick.C
	}
}

func (o *oldOne) cycle() {
	data, etag, err := o.get()
	if errors.Is(err, ErrStorageNotFound) {
		o.claim("")
		return
	}
	var l lockfile
	if err != nil || json.Unmarshal(data, &l) != nil {
		return
	}
	fresh := time.Now().Add(o.skew).Sub(l.LastUpdated) < oldTimeout
	switch {
	case fresh && l.LeaderID == o.id:
		if o.write(time.Now().Add(o.skew), etag) == nil {
			o.lead(true)
		}
	case fresh:
		o.lead(false)
	default:
		o.claim(etag)
	}
}

func (o *oldOne) claim(etag string) {
	o.mu.Lock()
	decline := o.decline
	o.mu.Unlock()
	if o.write(time.Now().Add(o.skew), etag) != nil {
		o.lead(false)
		return
	}
	if decline && !o.leads() {
		o.write(time.Time{}, o.named())
		return
	}
	o.lead(false) // this is a new beginning, even if it still believed that it led
	o.lead(true)
}

// named returns the ETag of the lockfile if it names this process.
func (o *oldOne) named() string {
	data, etag, err := o.get()
	var l lockfile
	if err != nil || json.Unmarshal(data, &l) != nil || l.LeaderID != o.id {
		return "none"
	}
	return etag
}

const oldPatience = 2 * time.Second

func (o *oldOne) get() ([]byte, string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), oldPatience)
	defer cancel()
	return ToStorage(o.line).Get(ctx, "lock.json")
}

func (o *oldOne) write(at time.Time, etag string) error {
	o.mu.Lock()
	refused := time.Now().Before(o.refused)
	o.mu.Unlock()
	if refused {
		return errRefused
	}
	data, err := json.Marshal(lockfile{LeaderID: o.id, LeaderAddr: o.id + ":8443", LastUpdated: at})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), oldPatience)
	defer cancel()
	return ToStorage(o.line).PutIfMatch(ctx, "lock.json", data, etag)
}

func (o *oldOne) lead(yes bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if yes && !o.leading {
		o.since = time.Now()
	}
	o.leading = yes
}

func (o *oldOne) leads() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.leading
}

// Leads reports whether the process leads and is able to act.
func (o *oldOne) Leads() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.leading && !time.Now().Before(o.frozen)
}

// led returns since when it has led, and until when it was frozen.
func (o *oldOne) led() (since, awake time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since, o.frozen
}

func (o *oldOne) Name() string { return "old " + o.id }

// trouble causes one kind of trouble for a process for a while, and returns a function that ends
// it.
func (o *oldOne) trouble(kind int, d time.Duration) (undo func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch kind % 3 {
	case 0:
		if until := time.Now().Add(d); until.After(o.frozen) {
			o.frozen = until
		}
	case 1:
		o.refused = time.Now().Add(d)
	case 2:
		o.decline = true
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.decline = false
	}
}

func (o *oldOne) End(crash bool) {
	if crash {
		o.lead(false) // an interrupted action is not an act
		close(o.die)
	} else {
		close(o.resign)
	}
	<-o.done
}
