package main

import (
	"fmt"
	"strings"
)

// row is one experiment. It may yield several measures.
type row struct {
	name  string
	title string
	// note says where each measure begins and ends.
	note    string
	measure func(*bench) ([]measure, error)
}

// measure is one line of the table.
type measure struct {
	what    string
	value   string
	bound   string
	verdict verdict
	// before is what nats-kv-leader-elect needs, others what etcd and Kubernetes' client-go do.
	before, others string
}

// verdict is how a value stands to its bound.
type verdict int

const (
	none       verdict = iota // there is no bound
	held                      //
	missed                    // a bound on time
	unmeasured                // something went wrong
	broken                    // a promise of safety
)

func (v verdict) String() string {
	return [...]string{"", "ok", "MISSED", "UNMEASURED", "BROKEN"}[v]
}

// within judges a bound on time.
func within(ok bool) verdict {
	if ok {
		return held
	}
	return missed
}

// safe judges a promise.
func safe(ok bool) verdict {
	if ok {
		return held
	}
	return broken
}

func rows() []row {
	return []row{
		crashRow, handoverRow, freshRow, steadyRow, pauseRow, cutRow, crowdRow, storeRow,
		objectSteadyRow, objectCrashRow, objectStopRow, objectCutRow, objectOutageRow, objectClocksRow, objectFaultsRow,
	}
}

// choose takes the name of a row, or what comes before the hyphen in the names of several.
func choose(name string) ([]row, error) {
	var chosen []row
	var names []string
	for _, r := range rows() {
		if name == "" || r.name == name || strings.HasPrefix(r.name, name+"-") {
			chosen = append(chosen, r)
		}
		names = append(names, r.name)
	}
	if chosen == nil {
		return nil, fmt.Errorf("there is no row %q; there are %s", name, strings.Join(names, ", "))
	}
	return chosen, nil
}
