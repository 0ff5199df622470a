package main

import (
	"fmt"
	"io"
)

func publish(o options, results []*result, out io.Writer) error {
	for _, r := range results { fmt.Fprintf(out, "%+v\n", r.requests) }
	return nil
}
