package etcdkv

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/driver"
)

// stamp says in which history, and in which raft term or a later one, a value was written. It is
// the last line of the value in etcd.
type stamp struct{ cluster, term uint64 }

const (
	stampBegins = "\ntenure cluster="
	stampTerm   = " raft_term="
)

// seal returns the bytes that etcd keeps for a value.
func (s stamp) seal(value []byte) []byte {
	return fmt.Appendf(bytes.Clone(value), stampBegins+"%016x"+stampTerm+"%d", s.cluster, s.term)
}

// unseal returns the value in the bytes that etcd keeps, and its stamp. Bytes without a stamp were
// not written by this package.
func unseal(raw []byte) (value []byte, s stamp, ok bool) {
	at := bytes.LastIndex(raw, []byte(stampBegins))
	if at < 0 {
		return bytes.Clone(raw), stamp{}, false
	}
	cluster, term, _ := strings.Cut(string(raw[at+len(stampBegins):]), stampTerm)
	s.cluster, _ = strconv.ParseUint(cluster, 16, 64)
	s.term, _ = strconv.ParseUint(term, 10, 64)
	if !bytes.Equal(s.seal(raw[:at]), raw) {
		return bytes.Clone(raw), stamp{}, false
	}
	return bytes.Clone(raw[:at]), s, true
}

// proves reports whether a value with this stamp is of the history that an answer shows, as far as
// the cluster can tell.
func (s stamp) proves(answer point) bool {
	return s.cluster == answer.cluster && s.term <= answer.term
}

// version is a driver.Version of a cell that holds a value: the bytes that etcd keeps, their
// ModRevision, and the era in which they were read or written.
type version struct {
	era      uint64
	revision int64
	raw      string
}

func (v version) encode() driver.Version {
	return driver.Version(strconv.FormatUint(v.era, 16) + " " + strconv.FormatInt(v.revision, 10) + " " + v.raw)
}

func parseVersion(text driver.Version) (v version, ok bool) {
	era, rest, _ := strings.Cut(string(text), " ")
	revision, raw, ok := strings.Cut(rest, " ")
	if !ok {
		return version{}, false
	}
	var err error
	if v.era, err = strconv.ParseUint(era, 16, 64); err != nil {
		return version{}, false
	}
	if v.revision, err = strconv.ParseInt(revision, 10, 64); err != nil || v.revision <= 0 {
		return version{}, false
	}
	v.raw = raw
	return v, true
}
