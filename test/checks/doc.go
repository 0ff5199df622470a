// Command checks runs the steps of a file such as .ci/run.steps, and prints the result of each.
//
//	go run ./test/checks -steps .ci/run.steps                 all steps
//	go run ./test/checks -steps .ci/soak.steps -list          names, lanes and commands
//	go run ./test/checks -steps .ci/run.steps -only lint,race these steps
//	go run ./test/checks -steps .ci/soak.steps -from recipes  this step and the later ones
//	go run ./test/checks -steps .ci/soak.steps -into FILE     also writes the table to FILE
//
// A lane is a sequence of steps. Its steps run in the order of the file. Lanes run at the same
// time, so that steps that compute use the processor while other steps wait for servers. The lane
// "last" starts when the others have ended. A step that fails does not stop the others. At the end,
// a step that only ran out of time runs once more, alone. The exit code is 1 if a step failed or
// did not run, and 2 for a wrong flag or file.
//
// With -into, rows of steps that did not run this time stay as they are, so that several partial
// runs make one table.
package main
