package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/driver"
)

const (
	// othersWithin bounds the list of elections for a hint.
	othersWithin = 2 * time.Second
	// maxOthers is how many elections a hint names.
	maxOthers = 5
)

// suggest prints a hint with the elections of the store if the observed one has no record: its name
// may be misspelled.
func (o *observer) suggest(ctx context.Context, errs io.Writer, store driver.Store) {
	if s := o.Status(); s.Known && s.Record.Kind == admin.Absent {
		suggest(ctx, errs, o.place, store, o.Name())
	}
}

// suggestIfAbsent reads the record, and prints the hint if there is none.
func suggestIfAbsent(ctx context.Context, errs io.Writer, place stores.Place, store driver.Store, election string) {
	bounded, cancel := context.WithTimeout(ctx, othersWithin)
	defer cancel()
	if e, err := store.Read(bounded, election); err == nil && e.Absent() {
		suggest(ctx, errs, place, store, election)
	}
}

func suggest(ctx context.Context, errs io.Writer, place stores.Place, store driver.Store, election string) {
	l := driver.AbilitiesOf(store).Lister
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, othersWithin)
	defer cancel()
	names, err := l.Keys(ctx)
	if err != nil || len(names) == 0 || slices.Contains(names, election) {
		return
	}
	fmt.Fprintf(errs, "hint: %s\n", output.Plain(others(names, election, place.String())))
}

// others returns a hint with the names that are nearest to the given one.
func others(names []string, to, place string) string {
	text := fmt.Sprintf("there is no record of election %q in %s", to, place)
	near := slices.Clone(names)
	slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(distance(a, to), distance(b, to)) })
	left := len(near) - maxOthers
	text += "; there are: " + strings.Join(near[:min(len(near), maxOthers)], ", ")
	if left > 0 {
		text += fmt.Sprintf(", and %d others: see tenure list", left)
	}
	return text
}

func distance(a, b string) int { return cli.Distance(strings.ToLower(a), strings.ToLower(b)) }
