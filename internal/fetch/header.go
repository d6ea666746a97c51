package fetch

import (
	"mime"
	"net/http"
	"strings"
)

// maxHeaderValue bounds one kept header value, in bytes.
const maxHeaderValue = 1 << 10

// kept returns the response headers of the allow-list, names lower-case, several
// values joined. Headers that carry credentials are never kept, listed or not.
func kept(h http.Header, allow []string) map[string]string {
	out := make(map[string]string, len(allow))
	for _, name := range allow {
		name = strings.ToLower(name)
		switch name {
		case "set-cookie", "set-cookie2", "authorization", "proxy-authorization":
			continue
		}
		if values := h.Values(name); len(values) > 0 {
			v := strings.ToValidUTF8(strings.Join(values, ", "), "\uFFFD")
			if len(v) > maxHeaderValue {
				v = strings.ToValidUTF8(v[:maxHeaderValue], "")
			}
			out[name] = v
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// mediaType returns a Content-Type without its parameters, lower-case; "" for one
// that is none.
func mediaType(contentType string) string {
	t, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		t, _, _ = strings.Cut(contentType, ";")
		t = strings.ToLower(strings.TrimSpace(t))
	}
	if len(t) > 127 || !strings.Contains(t, "/") || strings.ContainsFunc(t, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return t
}
