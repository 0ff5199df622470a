package natskv

// Pristine has the first election in a bucket in which nothing was ever written begin at once, and not after one lease. The caller
// vouches that no candidate lives who knew an earlier bucket of this name: a server cannot tell a bucket that was deleted and made
// anew from one that never was, and a leader of the old one trusts its lease until it hears of it. It is for buckets that
// the program itself makes for itself, such as in tests and demonstrations.
func Pristine() Option { return func(o *opening) { o.pristine = true } }
