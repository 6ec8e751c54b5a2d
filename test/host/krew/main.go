// krew, the package manager of kubectl plugins, for the test of its manifest.
package main

import "sigs.k8s.io/krew/cmd/krew/cmd"

func main() { cmd.Execute() }
