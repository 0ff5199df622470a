package protocol

// Clone returns a machine in the same state, which shares nothing that changes. It is for programs
// that explore all continuations of one state.
func (m *Machine) Clone() *Machine {
	c := *m
	c.pending = append([]pendingWrite(nil), m.pending...)
	c.transitions = append([]Transition(nil), m.transitions...)
	if m.op != nil {
		op := *m.op
		c.op = &op
	}
	if m.view.rumor != nil {
		r := *m.view.rumor
		c.view.rumor = &r
	}
	if m.lease.offer != nil {
		o := *m.lease.offer
		c.lease.offer = &o
	}
	return &c
}
