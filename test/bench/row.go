package main

import (
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/test/internal/figures"
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
	verdict figures.Verdict
	// before is what nats-kv-leader-elect needs, others what etcd and Kubernetes' client-go do.
	before, others string
}

func rows() []row {
	return []row{
		crashRow, handoverRow, freshRow, steadyRow, pauseRow, cutRow, crowdRow, fleetRow, storeRow,
		replicaStoreRow, replicaStopRow, replicaCrashRow, replicaSteadyRow, replicaFaultsRow,
		objectSteadyRow, objectCrashRow, objectStopRow, objectCutRow, objectOutageRow, objectClocksRow, objectFaultsRow,
		logStoreRow, logCrashRow, logStopRow, logSteadyRow, logMemoryRow, logGroupRow, logCutRow, logPauseRow, logCoordinatorRow,
		logRestartRow, logBrokerRow,
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
