package proxypool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"holdfast/internal/crawl"
)

// config is a proxy's record in Redis, credentials included: the only encoding
// of them there is. Bytes, so that a password need not be UTF-8.
type config struct {
	Scheme   string   `json:"s"`
	Host     string   `json:"h"`
	Port     int      `json:"p"`
	Username []byte   `json:"u,omitempty"`
	Password []byte   `json:"w,omitempty"`
	Region   string   `json:"r,omitempty"`
	Tags     []string `json:"t,omitempty"`
	Source   string   `json:"o,omitempty"`
}

func encodeConfig(e Entry) (string, error) {
	b, err := json.Marshal(config{
		Scheme: e.Proxy.Scheme, Host: e.Proxy.Host, Port: e.Proxy.Port,
		Username: []byte(e.Proxy.Username), Password: []byte(e.Proxy.Password),
		Region: e.Proxy.Region, Tags: e.Proxy.Tags, Source: e.Source,
	})
	return string(b), err
}

func readConfig(s string) (config, error) {
	var c config
	if err := json.Unmarshal([]byte(s), &c); err != nil {
		// The decoder's message may quote the record.
		return config{}, fmt.Errorf("%w: proxy record", ErrReply)
	}
	return c, nil
}

func decodeConfig(id, s string) (crawl.Proxy, error) {
	c, err := readConfig(s)
	if err != nil {
		return crawl.Proxy{}, err
	}
	return crawl.Proxy{
		ID: id, Scheme: c.Scheme, Host: c.Host, Port: c.Port,
		Username: string(c.Username), Password: string(c.Password), Region: c.Region, Tags: c.Tags,
	}, nil
}

// sessionMark in a user name or password makes the proxy a gateway: each lease, or
// each session, is another identity at the same address.
const sessionMark = "{session}"

// gateway is "1" for a proxy whose credentials name the session, else "0".
func gateway(p crawl.Proxy) string {
	if strings.Contains(p.Username, sessionMark) || strings.Contains(p.Password, sessionMark) {
		return "1"
	}
	return "0"
}

// expand puts the identity of a session, or of a lease that has none, into a
// gateway's credentials: 16 hex digits that say nothing about its name.
func expand(p *crawl.Proxy, session string) {
	if gateway(*p) == "0" {
		return
	}
	sum := sha256.Sum256([]byte(session))
	name := hex.EncodeToString(sum[:8])
	p.Username = strings.ReplaceAll(p.Username, sessionMark, name)
	p.Password = strings.ReplaceAll(p.Password, sessionMark, name)
}

// credentials names a pair of user and password without telling it; empty for none.
func credentials(p crawl.Proxy) string {
	if p.Username == "" && p.Password == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("credentials\x00" + p.Username + "\x00" + p.Password))
	return hex.EncodeToString(sum[:6])
}

// identity is what makes two proxies the same one: the password is not part of it.
func identity(p crawl.Proxy) string {
	return p.Scheme + "|" + p.Host + "|" + strconv.Itoa(p.Port) + "|" + p.Username
}
