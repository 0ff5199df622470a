package figures

// Verdict says whether a value keeps its bound. A higher verdict is worse.
type Verdict int

// The verdicts.
const (
	None       Verdict = iota // the value has no bound
	Held                      //
	Missed                    // a bound on time is exceeded
	Unmeasured                // the measurement failed
	Broken                    // a promise of safety is broken
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

// Safe judges a promise of safety.
func Safe(ok bool) Verdict {
	if ok {
		return Held
	}
	return Broken
}
