// Package recipes is nothing to import: its tests carry out, as far as that goes without systemd, Kubernetes and Docker,
// what deploy and the documentation tell people to do.
//
//	go test ./test/recipes                      reads all recipes, and runs each command line of tenure run on a server inside
//	TENURE_RECIPES=all go test ./test/recipes   also builds as the Dockerfile does and runs the result as process 1 with nothing
//	                                            else around it; and fails where systemd or the rights for that are missing
package recipes
