//go:build tools

// Package tools pins the program that the testbed builds from this module.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
