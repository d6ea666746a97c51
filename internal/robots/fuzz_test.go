package robots_test

import (
	"testing"

	"holdfast/internal/robots"
)

// FuzzRules holds that any file parses, and that what is kept of it forbids what
// the file forbids.
func FuzzRules(f *testing.F) {
	for _, s := range []string{
		"", "User-agent: *\nDisallow: /", "\ufeffuser-agent: holdfast\nallow: /a*b$\ndisallow: /%2f%zz%", "Disallow: *$*$",
		"User-agent *\rDisallow /x\r\nCrawl-delay: 1e9", "User-agent: holdfast\nDisallow: /ツ\x00\xff",
	} {
		f.Add(s, "/a/b?c=%7e*$")
	}
	f.Fuzz(func(t *testing.T, file, path string) {
		e := judge(file)
		data, err := e.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var got robots.Entry
		if err := got.UnmarshalBinary(data); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		if len(data) < robots.MaxEncoded/2 && got.Allowed(path) != e.Allowed(path) {
			t.Errorf("%q: allowed %v, kept as %v", path, e.Allowed(path), got.Allowed(path))
		}
		if got.Allowed(path) && !e.Allowed(path) {
			t.Errorf("%q became allowed", path)
		}
	})
}

// FuzzEntry holds that no bytes in Redis make a reader panic.
func FuzzEntry(f *testing.F) {
	for _, s := range []string{"popen 404 -1\n", "prules 200 5\n-/x\n+/y*$\n", "z\x00", ""} {
		f.Add([]byte(s), "/x")
	}
	f.Fuzz(func(_ *testing.T, data []byte, path string) {
		var e robots.Entry
		if e.UnmarshalBinary(data) == nil {
			e.Allowed(path)
		}
	})
}
