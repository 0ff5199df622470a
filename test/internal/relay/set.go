package relay

import "strings"

// Set holds the relays between one client and several servers, by the servers' addresses.
type Set map[string]*Relay

// NewSet starts a relay to each of these hosts and ports.
func NewSet(addresses []string) (Set, error) {
	all := Set{}
	for _, server := range addresses {
		r, err := New("tcp://" + server)
		if err != nil {
			all.Close()
			return nil, err
		}
		all[server] = r
	}
	return all, nil
}

// Via returns the address of the relay for each server.
func (all Set) Via() map[string]string {
	found := map[string]string{}
	for server, r := range all {
		_, found[server], _ = strings.Cut(r.URL(), "//")
	}
	return found
}

// Cut stops all bytes in both directions, and leaves the connections open. The returned function
// ends the cut. If lossy is set, the bytes are lost and the connections end with the cut. Otherwise
// the bytes pass when it ends.
func (all Set) Cut(lossy bool) (end func()) {
	begin, heal := (*Relay).Hold, (*Relay).Release
	if lossy {
		begin, heal = (*Relay).Blackhole, (*Relay).Heal
	}
	all.each(begin)
	return func() { all.each(heal) }
}

// Blackhole does to each relay what it does to one. So do Mute, Hold, Release and Heal.
func (all Set) Blackhole() { all.each((*Relay).Blackhole) }

// Mute is described at Blackhole.
func (all Set) Mute() { all.each((*Relay).Mute) }

// Hold is described at Blackhole.
func (all Set) Hold() { all.each((*Relay).Hold) }

// Release is described at Blackhole.
func (all Set) Release() { all.each((*Relay).Release) }

// Heal is described at Blackhole.
func (all Set) Heal() { all.each((*Relay).Heal) }

// Close ends all relays.
func (all Set) Close() { all.each((*Relay).Close) }

func (all Set) each(do func(*Relay)) {
	for _, r := range all {
		do(r)
	}
}
