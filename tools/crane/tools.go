//go:build tools

// Package tools pins the program that `make image` pulls the base image with.
package tools

import _ "github.com/google/go-containerregistry/cmd/crane"
