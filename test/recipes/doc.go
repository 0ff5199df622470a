// Package recipes has only tests. They carry out the instructions of deploy and of the
// documentation, as far as that is possible without systemd, Kubernetes and Docker.
//
//	go test ./test/recipes                            checks the guide's times, and how command
//	                                                  lines are found in documents
//	go test -tags integration -short ./test/recipes   also reads all recipes, and runs each command
//	                                                  line of tenure run, on a server in the test
//	go test -tags integration ./test/recipes          also builds as the Dockerfile does, and runs
//	                                                  the result as process 1 with no other
//	                                                  files around
//
// With the tag, a missing systemd-analyze fails the tests, and so do missing rights to start
// process namespaces. The last tests are for Linux.
package recipes
