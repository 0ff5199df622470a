package relay

import "strings"

// Set is relays between one client and several servers, by the servers' addresses.
type Set map[string]*Relay

// NewSet relays to each of these hosts and ports.
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

// Via returns where the client connects instead, for each server.
func (all Set) Via() map[string]string {
	found := map[string]string{}
	for server, r := range all {
		_, found[server], _ = strings.Cut(r.URL(), "//")
	}
	return found
}

// Cut lets no byte pass in either direction, and leaves the connections open. If it is lossy, the
// bytes are lost, and the connections end with the cut. Otherwise the bytes pass when it ends. The
// function that it returns ends the cut.
func (all Set) Cut(lossy bool) (end func()) {
	begin, heal := (*Relay).Hold, (*Relay).Release
	if lossy {
		begin, heal = (*Relay).Blackhole, (*Relay).Heal
	}
	all.each(begin)
	return func() { all.each(heal) }
}

// Close ends all relays.
func (all Set) Close() { all.each((*Relay).Close) }

func (all Set) each(do func(*Relay)) {
	for _, r := range all {
		do(r)
	}
}
