package relay

// mode is what becomes of the bytes on their way.
type mode int

const (
	passing mode = iota
	holding
	swallowing
	muting
)

// Blackhole swallows everything in both directions and leaves the connections open, so that neither side is told.
func (r *Relay) Blackhole() { r.set(swallowing) }

// Mute swallows what the server says: requests are carried out and their answers lost.
func (r *Relay) Mute() { r.set(muting) }

// Hold keeps everything in both directions, as a partition does that ends before TCP gives up: what was sent meanwhile
// arrives after Release, late.
func (r *Relay) Hold() { r.set(holding) }

// Release ends a Hold.
func (r *Relay) Release() { r.set(passing) }

// Heal lets everything pass again, on new connections: what was swallowed left a gap in the old ones.
func (r *Relay) Heal() {
	r.mu.Lock()
	r.drop()
	r.mu.Unlock()
	r.set(passing)
}

func (r *Relay) set(m mode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mode = m
	close(r.changed)
	r.changed = make(chan struct{})
}

// lets says whether bytes in this direction go on, after the end of a hold if there is one.
func (r *Relay) lets(answers bool) bool {
	for {
		r.mu.Lock()
		m, changed := r.mode, r.changed
		r.mu.Unlock()
		if m != holding {
			return m == passing || m == muting && !answers
		}
		<-changed
	}
}
