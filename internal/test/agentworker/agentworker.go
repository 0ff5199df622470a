// Package agentworker has the programs that act through an agent in tests and in the battery: one
// for each client in clients/. Each takes part in the election "billing" and does the same:
//
//	PROGRAM ADDRESS ID JOURNAL LEASE MODE
//
// While it leads, it asks every 5 ms whether it may act. After each yes it appends an act to the
// journal (docs/testing.md), with the time before the question and the number that ends its id. The
// lease is in milliseconds, and twice the interval of heartbeats. It prints "up" when its campaign
// has begun, "leads" and "ended" with the token of each term. In mode "asks" it does nothing more.
// As "cached" it asks once in each term, which is a mistake. Each program describes its other
// modes.
package agentworker

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Election is the election of all workers.
const Election = "billing"

// Program returns the command line of the worker in a language: python, asyncio, node or java.
// Root is the directory of the repository. The worker in Java is compiled into a directory, and
// .ci/clients must have compiled the client for Node.
func Program(ctx context.Context, root, language, classes string) ([]string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	source := func(name string) string { return filepath.Join(root, "internal/test/agentworker", name) }
	client := filepath.Join(root, "clients", language)
	switch language {
	case "python":
		return []string{"python3", "-B", source("worker.py"), client}, nil
	case "asyncio":
		return []string{"python3", "-B", source("worker_asyncio.py"), filepath.Join(root, "clients/python")}, nil
	case "node":
		if _, err := os.Stat(filepath.Join(client, "dist")); err != nil {
			return nil, fmt.Errorf("run .ci/clients, which compiles the client for Node: %w", err)
		}
		return []string{"node", source("worker.mjs"), client}, nil
	case "java":
		return java(ctx, filepath.Join(client, "agent"), source("Worker.java"), classes)
	}
	return nil, fmt.Errorf("there is no worker in %q", language)
}

// java compiles the worker together with its client.
func java(ctx context.Context, client, worker, classes string) ([]string, error) {
	sources, err := filepath.Glob(filepath.Join(client, "src/main/java/io/github/tenurego/agent/*.java"))
	if err != nil {
		return nil, err
	}
	args := append([]string{"-J-XX:TieredStopAtLevel=1", "--release", "17", "-Xlint:all", "-Werror", "-d", classes, worker}, sources...)
	if out, err := exec.CommandContext(ctx, "javac", args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("javac: %w\n%s", err, out)
	}
	return []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx64m", "-cp", classes, "Worker"}, nil
}
