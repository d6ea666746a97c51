package proxypool

import (
	"encoding/json"
	"fmt"
	"strconv"

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

// identity is what makes two proxies the same one: the password is not part of it.
func identity(p crawl.Proxy) string {
	return p.Scheme + "|" + p.Host + "|" + strconv.Itoa(p.Port) + "|" + p.Username
}
