//go:build tools

// Package tools pins what the testbed builds from this module, with the tag remove_all_sd.
package tools

import _ "github.com/prometheus/prometheus/cmd/promtool"
