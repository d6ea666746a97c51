package arch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
)

// Module is the module's path: packages below it are ours.
const Module = "holdfast"

// Package is one package of ours, as `go list -json` describes it.
type Package struct {
	ImportPath string
	Name       string
	// Imports are the direct imports of the package itself, Deps all it links.
	Imports []string
	Deps    []string
	// TestImports and XTestImports are those of its tests, inside and outside
	// the package.
	TestImports  []string
	XTestImports []string
}

// Dir returns the package's folder below the module: "internal/crawl".
func (p Package) Dir() string { return dirOf(p.ImportPath) }

// Load lists the packages of the module that holds the folder dir.
func Load(ctx context.Context, dir string) ([]Package, error) {
	cmd := exec.CommandContext(ctx, "go", "list",
		"-json=ImportPath,Name,Imports,Deps,TestImports,XTestImports", Module+"/...")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return decode(bytes.NewReader(out))
}

// Watch looks at every folder below root, so that the test that calls it is run
// again when a file changes: go test's cache sees what a test opens itself, not
// what the go command, run by it, reads.
func Watch(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		return nil
	})
}

// decode reads the JSON values that go list prints one after the other.
func decode(r io.Reader) ([]Package, error) {
	var pkgs []Package
	for dec := json.NewDecoder(r); ; {
		var p Package
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return pkgs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decode package list: %w", err)
		}
		pkgs = append(pkgs, p)
	}
}

// dirOf returns the folder of an import path of ours, and "" for others.
func dirOf(path string) string {
	dir, ours := strings.CutPrefix(path, Module+"/")
	if !ours {
		return ""
	}
	return dir
}

// within reports whether path is root or lies below it.
func within(path, root string) bool {
	rest, ok := strings.CutPrefix(path, root)
	return ok && (rest == "" || rest[0] == '/')
}
