package neli

import "time"

// closeWithin bounds how long Close waits.
const closeWithin = 10 * time.Second

func (n *elector) Close() error {
	n.change(func() {
		if n.state == Live {
			n.state = Closing
		}
	})
	n.stop()
	late := time.NewTimer(closeWithin)
	defer late.Stop()
	for {
		changed := n.news()
		n.tell()
		select {
		case <-n.closed:
			return n.closing
		default:
		}
		select {
		case <-changed:
		case <-n.closed:
		case <-late.C:
			return errBusy
		}
	}
}

// ended completes the closing of an instance.
func (n *elector) ended() {
	err := n.ground.close()
	n.change(func() { n.state, n.closing = Closed, err })
	close(n.closed)
}
