//go:build integration && !linux

package recipes

import "errors"

const rootVariable = "TENURE_RECIPES_ROOT"

func enter(string) error { return errors.New("only Linux has process namespaces") }
