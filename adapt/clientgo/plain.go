package clientgo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/tenure-go/tenure/driver"
)

// PlainLock is a resourcelock.Interface in the plain mode: the elector of client-go elects, and the
// store only keeps its record. There can be two leaders: see the package documentation. It must be
// made by NewPlain, for one elector.
type PlainLock struct {
	store          driver.Store
	name, identity string

	mu      sync.Mutex
	version driver.Version // of the state that was read or written last
	read    bool
}

var _ resourcelock.Interface = (*PlainLock)(nil)

// NewPlain returns a lock under a name in a store, for an elector with an identity that no other
// elector has. The name must not be that of an election of Tenure. It does not call the store. It
// returns an error if the store cannot hold the name, or the identity is empty or longer than 256
// bytes.
func NewPlain(store driver.Store, name, identity string) (*PlainLock, error) {
	if store == nil {
		return nil, errors.New("clientgo: the store is nil")
	}
	if identity == "" || len(identity) > 256 {
		return nil, fmt.Errorf("clientgo: the identity has %d bytes: give it 1 to 256", len(identity))
	}
	if err := driver.AbilitiesOf(store).CheckKey(name); err != nil {
		return nil, fmt.Errorf("clientgo: %w", err)
	}
	return &PlainLock{store: store, name: name, identity: identity}, nil
}

// cell is the value in the store. The nonce makes each write differ, as a driver.Store needs: the
// times in a record have whole seconds.
type cell struct {
	Record *resourcelock.LeaderElectionRecord `json:"clientGo"`
	Nonce  string                             `json:"nonce"`
}

var resource = schema.GroupResource{Group: "tenure", Resource: "elections"}

// Get reads the record. It returns an error for which errors.IsNotFound of apimachinery is true if
// there is none, and an error of another kind if the cell belongs to another program or the store
// does not answer.
func (p *PlainLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	e, err := p.store.Read(ctx, p.name)
	if err != nil {
		return nil, nil, err
	}
	var c cell
	if !e.Absent() && (json.Unmarshal(e.Value, &c) != nil || c.Record == nil) {
		return nil, nil, fmt.Errorf("clientgo: %q holds the data of another program, such as an election of Tenure: choose another name", p.name)
	}
	p.mu.Lock()
	p.version, p.read = e.Version, true
	p.mu.Unlock()
	if c.Record == nil {
		return nil, nil, apierrors.NewNotFound(resource, p.name)
	}
	return c.Record, e.Value, nil
}

// Create writes the record if there is none since the last Get.
func (p *PlainLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return p.Update(ctx, r)
}

// Update replaces the state that this lock read or wrote last. It returns an error for which
// errors.IsConflict of apimachinery is true if the cell has changed since.
func (p *PlainLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	value, err := json.Marshal(cell{&r, rand.Text()})
	if err != nil {
		return err
	}
	p.mu.Lock()
	version, read := p.version, p.read
	p.mu.Unlock()
	if !read {
		return errors.New("clientgo: Get was not called yet")
	}
	version, err = p.store.CompareAndSwap(ctx, p.name, version, value)
	if errors.Is(err, driver.ErrConflict) {
		return apierrors.NewConflict(resource, p.name, err)
	}
	if err == nil { // an elector makes one call at a time
		p.mu.Lock()
		p.version = version
		p.mu.Unlock()
	}
	return err
}

// RecordEvent does nothing.
func (p *PlainLock) RecordEvent(string) {}

// Identity returns that of NewPlain.
func (p *PlainLock) Identity() string { return p.identity }

// Describe returns the name of the lock, for logs.
func (p *PlainLock) Describe() string { return "lock " + p.name }
