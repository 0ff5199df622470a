package natskv

// Pristine lets the first election begin at once, and not after one lease, in a bucket that was
// never written to. The caller vouches that no candidate is alive that knew an earlier bucket of
// this name: a server cannot tell a recreated bucket from a new one, and a leader of the old one
// trusts its lease until it notices. Use it for buckets that the program itself makes for itself,
// such as in tests and demonstrations.
func Pristine() Option { return func(o *opening) { o.pristine = true } }
