package natskv

// Pristine lets the first election begin at once, and not after one lease, in a bucket that was
// never written to. Its storage must be files. The caller vouches that no living candidate knew an
// earlier bucket of this name: a server cannot distinguish a recreated bucket from a new one, and a
// leader of the old one trusts its lease until it notices. Use it for buckets that only the program
// itself makes and uses, for example in tests and demonstrations.
func Pristine() Option { return func(o *opening) { o.pristine = true } }

// PristineHint names Pristine, unless this store was opened with it or cannot be.
func (s *Store) PristineHint() string {
	if b, ok := s.cells.(*bucket); !ok || b.pristine {
		return ""
	}
	return "in a bucket that is certainly new, natskv.Pristine() or ?pristine=true in the URL avoids this wait"
}
