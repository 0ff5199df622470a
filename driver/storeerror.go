package driver

// StoreError reports that a record, or the store that holds it, is not as the members of the
// election left it. Package tenure has it under the same name. Two StoreErrors of one Kind are the
// same for errors.Is.
type StoreError struct{ Kind Damage }

// Damage is the kind of a StoreError.
type Damage string

// The kinds.
const (
	// Deleted: the record was deleted, purged, or expired in the store.
	Deleted Damage = "deleted"
	// Recreated: the store was recreated, or its server restarted or replaced, so its former
	// contents prove nothing.
	Recreated Damage = "recreated"
	// Regressed: the store holds an older state than before, as after a restored backup.
	Regressed Damage = "regressed"
	// Foreign: the key holds bytes that are not an election record. No election overwrites them,
	// and nobody leads.
	Foreign Damage = "foreign"
	// Malformed: the key holds a record that breaks a limit of the format, or whose term is not
	// credible.
	Malformed Damage = "malformed"
)

// Error describes the damage.
func (e *StoreError) Error() string {
	switch e.Kind {
	case Deleted:
		return "record was deleted or expired in the store"
	case Recreated:
		return "store was recreated, or its server was restarted or replaced"
	case Regressed:
		return "store holds an older state than before"
	case Foreign:
		return "key holds bytes that are not an election record"
	case Malformed:
		return "key holds a malformed election record"
	}
	return string(e.Kind)
}

// Is reports whether the target is a StoreError of the same Kind.
func (e *StoreError) Is(target error) bool {
	t, ok := target.(*StoreError)
	return ok && t.Kind == e.Kind
}
