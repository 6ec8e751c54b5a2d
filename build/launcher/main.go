// Starts kubectl skyhook with the Node and the libraries that lie beside it, whatever the host has: an executable
// without libraries of its own, because a script needs a shell and a program of C the loader of the host.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

var loaders = map[string]string{"amd64": "ld-linux-x86-64.so.2", "arm64": "ld-linux-aarch64.so.1"}

func main() {
	self, err := os.Executable() // links are followed: package managers put one on PATH
	if err != nil {
		fmt.Fprintln(os.Stderr, "error: kubectl skyhook cannot find its own folder:", err)
		os.Exit(1)
	}
	lib := filepath.Join(filepath.Dir(self), "lib")
	loader := filepath.Join(lib, loaders[runtime.GOARCH])
	arguments := []string{loader, "--library-path", lib, filepath.Join(lib, "node"), filepath.Join(lib, "start.cjs")}
	// kubectl asks by this name for what may follow
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl_complete-") {
		arguments = append(arguments, "__complete")
	}
	err = syscall.Exec(loader, append(arguments, os.Args[1:]...), os.Environ())
	fmt.Fprintf(os.Stderr, "error: cannot start %s: %v\n       unpack the whole archive again\n", loader, err)
	os.Exit(1)
}
