//go:build !linux

package main

import "errors"

func processesOf(string) ([]process, error) { return nil, errors.ErrUnsupported }

func usageOf(int) (usage, error) { return usage{}, errors.ErrUnsupported }
