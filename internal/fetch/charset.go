package fetch

import (
	"mime"
	"net/http"
	"regexp"
	"strings"

	"golang.org/x/net/html/charset"
)

// describe fills in what the first bytes of a body tell: its type where no header
// gave one, and the charset of a text.
func (x *exchange) describe(head []byte) {
	if len(head) == 0 {
		return
	}
	header := x.contentType
	if x.page.ContentType == "" {
		header = http.DetectContentType(head)
		x.page.ContentType = mediaType(header)
	}
	x.page.Charset = charsetOf(x.page.ContentType, header, head)
}

// xmlEncoding is XML's own declaration, which the HTML rules do not look at.
var xmlEncoding = regexp.MustCompile(`^\s*<\?xml\s[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']`)

// charsetOf returns the WHATWG name of a text's charset, "" for what is no text.
// In order: a byte order mark, the header, a <meta> or XML declaration, UTF-8 if
// the bytes are valid UTF-8, the format's default. The bytes themselves are kept as they came.
func charsetOf(media, header string, head []byte) string {
	if !isText(media) {
		return ""
	}
	if _, params, err := mime.ParseMediaType(header); err != nil || params["charset"] == "" {
		// An unreadable header must not hide what the page says.
		header = media
		if m := xmlEncoding.FindSubmatch(head); m != nil && strings.Contains(media, "xml") {
			if _, name := charset.Lookup(string(m[1])); name != "" {
				header = media + "; charset=" + name
			}
		}
	}
	_, name, certain := charset.DetermineEncoding(head, header)
	if !certain && name == "windows-1252" && !strings.HasPrefix(media, "text/") {
		return "utf-8" // the default of XML (§4.3.3) and JSON (RFC 8259 §8.1)
	}
	return name
}

func isText(media string) bool {
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+xml") || strings.HasSuffix(media, "/xml") ||
		strings.HasSuffix(media, "/json") || strings.HasSuffix(media, "+json") || media == "application/javascript"
}
