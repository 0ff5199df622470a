package slots

import (
	"context"
	"errors"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
)

// work is the handler of each slot's election. It notes when the work declines a term: then this
// member must not go on with the next free slot at once.
type work struct {
	m       *Member
	handler tenure.Handler
}

// Elected implements tenure.Handler.
func (w *work) Elected(ctx context.Context, t *tenure.Term) (stop func(context.Context) error, err error) {
	w.m.wake()
	stop, err = w.handler.Elected(ctx, t)
	w.m.note(err)
	if err != nil || stop == nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		err := stop(ctx)
		w.m.note(err)
		return err
	}, nil
}

// note begins a pause if the work has declined the term.
func (m *Member) note(err error) {
	defer m.wake()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !errors.Is(err, tenure.ErrDecline) {
		m.declined = 0
		return
	}
	m.declined++
	m.pausedAt, m.pause = m.now().Mono, max(0, m.full.Tuning.Backoff(m.declined))
}

// pauseLeft returns how much longer this member begins no campaign.
func (m *Member) pauseLeft(now clock.Reading) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.declined == 0 {
		return 0
	}
	return max(0, m.pausedAt+m.pause-now.Mono)
}
