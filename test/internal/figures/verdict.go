package figures

// Verdict is how a value stands to its bound. The higher, the worse.
type Verdict int

// The verdicts.
const (
	None       Verdict = iota // there is no bound
	Held                      //
	Missed                    // a bound on time
	Unmeasured                // something went wrong
	Broken                    // a promise of safety
)

func (v Verdict) String() string {
	return [...]string{"", "ok", "MISSED", "UNMEASURED", "BROKEN"}[v]
}

// Within judges a bound on time.
func Within(ok bool) Verdict {
	if ok {
		return Held
	}
	return Missed
}

// Safe judges a promise.
func Safe(ok bool) Verdict {
	if ok {
		return Held
	}
	return Broken
}
