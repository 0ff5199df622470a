package k8sfake

import (
	"bytes"
	"encoding/json"
	"maps"
	"strconv"
)

// lease is a Lease as JSON. It is not changed once it is in the store.
type lease map[string]any

func (l lease) metadata() map[string]any {
	m, _ := l["metadata"].(map[string]any)
	return m
}

func (l lease) text(field string) string {
	text, _ := l.metadata()[field].(string)
	return text
}

func (l lease) revision() uint64 {
	n, _ := strconv.ParseUint(l.text("resourceVersion"), 10, 64)
	return n
}

func (l lease) setRevision(n uint64) { l.metadata()["resourceVersion"] = strconv.FormatUint(n, 10) }

// clone has metadata of its own.
func (l lease) clone() lease {
	c := maps.Clone(l)
	c["metadata"] = maps.Clone(l.metadata())
	return c
}

// equal ignores the revision.
func (l lease) equal(other lease) bool {
	a, b := l.clone(), other.clone()
	a.setRevision(0)
	b.setRevision(0)
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}
