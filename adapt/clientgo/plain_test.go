package clientgo

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

// usual are the usual settings of client-go.
var usual = Times{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}

// plain is a process with an elector in the plain mode.
type plain struct {
	*lab
	line faults.Store
	end  context.CancelFunc
	done chan struct{}
}

// plain starts an elector, and its work stops at once when its context ends.
func (l *lab) plain(id string, releases bool) *plain {
	l.count++
	p := &plain{lab: l, line: faults.New(l.store, uint64(l.count), faults.Plan{}), done: make(chan struct{})}
	lock, err := NewPlain(p.line, name, id)
	if err != nil {
		l.Fatal(err)
	}
	var ctx context.Context
	ctx, p.end = context.WithCancel(l.Context())
	go func() {
		defer close(p.done)
		c := l.elector(lock, usual, func(ctx context.Context) { l.works(ctx, id, 0) })
		c.ReleaseOnCancel = releases
		leaderelection.RunOrDie(ctx, c)
	}()
	return p
}

func (p *plain) ends() {
	p.end()
	<-p.done
}

func TestPlainElectorsTakeTurns(t *testing.T) {
	play(t, func(l *lab) {
		a := l.plain("a", false)
		l.leads("a", time.Second)
		b := l.plain("b", false)
		time.Sleep(time.Minute)
		l.leads("a", 0)
		a.ends()
		l.leads("b", 30*time.Second)
		a = l.plain("a", false)
		time.Sleep(time.Minute)
		b.line.Partition()
		l.leads("a", time.Minute)
		b.line.Heal()
		a.ends()
		b.ends()
	})
}

// TestPlainLock: the lock has the answers on which the elector relies.
func TestPlainLock(t *testing.T) {
	ctx, store := t.Context(), memory.New()
	a, err := NewPlain(store, name, "a")
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewPlain(store, name, "b")
	if err != nil {
		t.Fatal(err)
	}
	r := resourcelock.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 15}
	if err := a.Update(ctx, r); err == nil {
		t.Error("it has written over a state that it has not read")
	}
	for _, lock := range []*PlainLock{a, b} {
		if _, _, err := lock.Get(ctx); !apierrors.IsNotFound(err) {
			t.Errorf("Get of an absent record: %v", err)
		}
	}
	if err := a.Create(ctx, r); err != nil {
		t.Error(err)
	}
	if err := b.Create(ctx, r); !apierrors.IsConflict(err) {
		t.Errorf("Create over a record: %v", err)
	}
	now, first, err := b.Get(ctx)
	if err != nil || *now != r {
		t.Errorf("the record is %+v, %v", now, err)
	}
	if err := a.Update(ctx, r); err != nil {
		t.Error(err)
	}
	if err := b.Update(ctx, r); !apierrors.IsConflict(err) {
		t.Errorf("Update of an old state: %v", err)
	}
	if _, second, _ := b.Get(ctx); bytes.Equal(first, second) {
		t.Error("two renewals within a second look the same")
	}
	store.Put(name, []byte(`{"leaderID":"x","term":7}`))
	if _, _, err := a.Get(ctx); err == nil || !strings.Contains(err.Error(), "another program") {
		t.Errorf("Get of a record of Tenure: %v", err)
	}
	for says, make := range map[string]func() (*PlainLock, error){
		"store":    func() (*PlainLock, error) { return NewPlain(nil, name, "a") },
		"key":      func() (*PlainLock, error) { return NewPlain(store, "", "a") },
		"identity": func() (*PlainLock, error) { return NewPlain(store, name, "") },
		"300":      func() (*PlainLock, error) { return NewPlain(store, name, strings.Repeat("a", 300)) },
	} {
		if _, err := make(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the error is %v; want %q", err, says)
		}
	}
}
