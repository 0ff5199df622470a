package tenure

import (
	"maps"
	"slices"
	"sync"

	"github.com/tenure-go/tenure/internal/record"
)

// faces are the leaders that siblings have seen, so that their published data, the same in all
// their records, is in memory once. It is never changed there.
type faces struct {
	mu    sync.Mutex
	known []face // one of each ID
}

type face struct {
	id, addr string
	metadata map[string]string
}

// mostFaces bounds the number of kept leaders, which may be long gone.
const mostFaces = 64

// recognize replaces a record's data about its leader by an equal copy that is known already.
func (f *faces) recognize(r *record.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.known, func(k face) bool { return k.id == r.LeaderID })
	seen := face{r.LeaderID, r.LeaderAddr, r.Metadata}
	switch {
	case i < 0 && len(f.known) == mostFaces:
		f.known = []face{seen}
	case i < 0:
		f.known = append(f.known, seen)
	case f.known[i].same(&seen):
		k := f.known[i]
		r.LeaderID, r.LeaderAddr, r.Metadata = k.id, k.addr, k.metadata
	default:
		f.known[i] = seen
	}
}

func (f *face) same(o *face) bool { return f.addr == o.addr && maps.Equal(f.metadata, o.metadata) }
