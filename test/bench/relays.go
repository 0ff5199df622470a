package main

import (
	"net/url"

	"github.com/tenure-go/tenure/test/internal/relay"
)

// relays stand between one member and its servers, one for each server, and do the same.
type relays []*relay.Relay

// relayAll has a member go to its servers through relays of its own: to that of its URL, or else to each of its brokers, which the
// member is told how to find, since brokers name one another's addresses.
func relayAll(me *identity) (relays, error) {
	if len(me.Brokers) == 0 {
		r, err := relay.New(me.URL)
		if err != nil {
			return nil, err
		}
		there, err := url.Parse(me.URL)
		if err != nil {
			return relays{r}, err
		}
		there.Host = addressOf(r)
		me.URL = there.String()
		return relays{r}, nil
	}
	var all relays
	me.Via = map[string]string{}
	for _, broker := range me.Brokers {
		r, err := relay.New("tcp://" + broker)
		if err != nil {
			return all, err
		}
		all, me.Via[broker] = append(all, r), addressOf(r)
	}
	return all, nil
}

func addressOf(r *relay.Relay) string {
	there, err := url.Parse(r.URL())
	if err != nil {
		panic(err) // it wrote that itself
	}
	return there.Host
}

// Blackhole swallows everything in both directions and leaves the connections open.
func (all relays) Blackhole() { all.each((*relay.Relay).Blackhole) }

// Hold keeps everything in both directions until Release.
func (all relays) Hold() { all.each((*relay.Relay).Hold) }

// Release ends a Hold.
func (all relays) Release() { all.each((*relay.Relay).Release) }

// Heal lets everything pass again, on new connections.
func (all relays) Heal() { all.each((*relay.Relay).Heal) }

func (all relays) close() { all.each((*relay.Relay).Close) }

func (all relays) each(do func(*relay.Relay)) {
	for _, r := range all {
		do(r)
	}
}
