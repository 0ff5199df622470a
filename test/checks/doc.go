// Command checks runs the steps of a file such as .ci/run.steps, and prints the result of each.
//
//	go run ./test/checks -steps .ci/run.steps                 all steps
//	go run ./test/checks -steps .ci/soak.steps -list          names, lanes and commands
//	go run ./test/checks -steps .ci/run.steps -only vet,lint  these steps
//	go run ./test/checks -steps .ci/soak.steps -from battery  this step and the later ones
//	go run ./test/checks -steps .ci/soak.steps -into FILE     also writes the table to FILE
//
// Steps of one lane run in the order of the file. Lanes run beside one another, so that steps that
// wait for servers leave the processor to those that compute. The lane "last" starts when the
// others have ended. A step that fails does not stop the others; the exit code is 1 if any failed
// or did not run, 2 for a wrong flag or file.
//
// With -into, rows of steps that did not run this time stay as they are, so that several partial
// runs make one table.
package main
