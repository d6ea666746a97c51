package frontier

import (
	"bytes"
	"encoding/json"
	"strings"

	"golang.org/x/net/http/httpguts"

	"holdfast/internal/crawl"
)

// checkRequest refuses what no request may have, and puts Meta into its shortest form.
func checkRequest(r *crawl.Request) error {
	switch {
	case r.URL == "":
		return &URLError{"the request has no URL", ""}
	case !httpguts.ValidHeaderFieldName(r.Method):
		return &URLError{"the method is not a word", ""}
	case r.Method == "CONNECT" || r.Method == "TRACE":
		return &URLError{"the method " + r.Method + " is not allowed", ""}
	}
	for name, value := range r.Headers {
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return &URLError{"a header's name is not valid", ""}
		case !httpguts.ValidHeaderFieldValue(value):
			return &URLError{"the value of header " + name + " is not valid", ""}
		case ownHeader(name):
			return &URLError{"header " + name + " is not the request's to set", "leave it out"}
		}
	}
	meta := bytes.TrimSpace(r.Meta)
	if len(meta) == 0 || string(meta) == "null" {
		r.Meta = nil
		return nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, meta); err != nil {
		return &URLError{"meta is not JSON", ""}
	}
	if b.Len() > crawl.MaxMeta {
		return &URLError{"meta is larger than 1 KiB", "keep it elsewhere under a key"}
	}
	r.Meta = b.Bytes()
	return nil
}

// ownHeader reports headers that belong to the connection or to the proxy.
func ownHeader(name string) bool {
	switch strings.ToLower(name) {
	case "host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade",
		"proxy-authorization", "proxy-authenticate", "proxy-connection":
		return true
	}
	return false
}
