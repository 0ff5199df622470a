// Package bridge lets other packages of this module use what package tenure has and does not
// export. Package tenure sets the functions when it is initialized.
package bridge

// Renewed is described at timing.Renewed. The term is a *tenure.Term.
var Renewed func(term any) <-chan struct{}
