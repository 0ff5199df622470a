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

// choose takes the names of rows, separated by commas, or what comes before the hyphen in the names of several.
func choose(names string) ([]row, error) {
	if names == "" {
		return rows(), nil
	}
	var chosen []row
	for name := range strings.SplitSeq(names, ",") {
		found := named(name)
		if found == nil {
			var all []string
			for _, r := range rows() {
				all = append(all, r.name)
			}
			return nil, fmt.Errorf("there is no row %q; there are %s", name, strings.Join(all, ", "))
		}
		chosen = append(chosen, found...)
	}
	return chosen, nil
}

func named(name string) (found []row) {
	for _, r := range rows() {
		if r.name == name || strings.HasPrefix(r.name, name+"-") {
			found = append(found, r)
		}
	}
	return found
}
