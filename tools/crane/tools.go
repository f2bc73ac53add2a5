//go:build tools

// Package tools pins the program that `make image` and `make push` use.
package tools

import _ "github.com/google/go-containerregistry/cmd/crane"
