package robots_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/internal/robots"
)

func TestRulesDecideByGroupAndLongestMatch(t *testing.T) {
	t.Parallel()
	const bot = "Holdfast/1.2 (+https://example.org/bot)"
	cases := []struct {
		name, file string
		yes, no    []string
	}{
		{"an empty file allows all", "", []string{"/", "/x"}, nil},
		{"HTML allows all", "<!DOCTYPE html><html><body>Not found: /x</body>", []string{"/", "/x"}, nil},
		{"the star group", "User-agent: *\nDisallow: /p", []string{"/", "/q"}, []string{"/p", "/pq", "/p/x?y"}},
		{"a byte order mark", "\ufeffUser-agent: *\nDisallow: /", nil, []string{"/", "/x"}},
		{"half a byte order mark", "\xef\xbbUser-agent: *\nDisallow: /", nil, []string{"/"}},
		{"carriage returns alone", "User-agent: *\rDisallow: /p\r", []string{"/"}, []string{"/p"}},
		{"Windows line ends", "User-agent: *\r\nDisallow: /p\r\n\r\nDisallow: /q\r\n", []string{"/"}, []string{"/p", "/q"}},
		{"our group instead of the star's", "User-agent: *\nDisallow: /\n\nUser-agent: holdfast\nDisallow: /own", []string{"/", "/x"}, []string{"/own"}},
		{"our group before the star's", "User-agent: HOLDFAST\nDisallow: /own\nUser-agent: *\nDisallow: /", []string{"/"}, []string{"/own"}},
		{"our group with a version", "User-agent: Holdfast/9.9\nDisallow: /own\nUser-agent: *\nDisallow: /", []string{"/"}, []string{"/own"}},
		{"our group without rules", "User-agent: holdfast\nDisallow:\n\nUser-agent: *\nDisallow: /", []string{"/", "/x"}, nil},
		{"a longer token is another crawler", "User-agent: holdfastbot\nDisallow: /\n", []string{"/"}, nil},
		{"a shorter token is another crawler", "User-agent: hold\nDisallow: /\n", []string{"/"}, nil},
		{"groups of one crawler are taken together", "User-agent: holdfast\nDisallow: /a\nUser-agent: x\nDisallow: /c\nUser-agent: holdfast\nDisallow: /b", []string{"/c"}, []string{"/a", "/b"}},
		{"several crawlers share a group", "User-agent: a\nUser-agent: holdfast\nUser-agent: b\nDisallow: /p", []string{"/"}, []string{"/p"}},
		{"other records do not split a group", "User-agent: holdfast\nSitemap: https://x/\nCrawl-delay: 3\nUser-agent: b\nDisallow: /p", nil, []string{"/p"}},
		{"rules before any group are nobody's", "Disallow: /\nUser-agent: x\nDisallow: /", []string{"/"}, nil},
		{"the longest match wins", "User-agent: *\nDisallow: /p\nAllow: /p/q\nDisallow: /p/q/r", []string{"/p/q", "/p/q/"}, []string{"/p", "/p/x", "/p/q/r"}},
		{"order does not matter", "User-agent: *\nAllow: /p/q\nDisallow: /p", []string{"/p/q"}, []string{"/p"}},
		{"allow wins a tie", "User-agent: *\nDisallow: /p\nAllow: /p", []string{"/p"}, nil},
		{"stars and the end", "User-agent: *\nDisallow: /*.php$\nDisallow: /a*b*c\nDisallow: /$", []string{"/x.php?y", "/acb", "/x"}, []string{"/x.php", "/.php", "/axxbxxcxx", "/abc", "/"}},
		{"a star within and the end", "User-agent: *\nDisallow: /a*aa$\nDisallow: *x", []string{"/aa", "/a"}, []string{"/aaa", "/abaa", "/kx"}},
		{"many stars", "User-agent: *\nDisallow: /***a", []string{"/b"}, []string{"/a", "/ba"}},
		{"a dollar inside is a dollar", "User-agent: *\nDisallow: /a$b", []string{"/ab", "/a"}, []string{"/a$b", "/a$bc", "/a%24b"}},
		{"special characters meant literally", "User-agent: *\nDisallow: /f-%2A.html\nDisallow: /g-%24", []string{"/f-x.html", "/g-"}, []string{"/f-*.html", "/f-%2a.html", "/g-$"}},
		{"encoded unreserved characters", "User-agent: *\nDisallow: /foo/%62%61%7A\nDisallow: /%7Ejoe", []string{"/foo/ba"}, []string{"/foo/baz", "/foo/%62az", "/~joe/", "/%7ejoe"}},
		{"encoded reserved characters stay apart", "User-agent: *\nDisallow: /a%2fb\nDisallow: /q?x=http://y", []string{"/a/b", "/q?x=http%3A%2F%2Fy"}, []string{"/a%2Fb", "/a%2fb", "/q?x=http://y"}},
		{"octets beyond ASCII", "User-agent: *\nDisallow: /ツ\nDisallow: /%E3%83%84x", nil, []string{"/ツ", "/%E3%83%84", "/%e3%83%84x"}},
		{"paths are case-sensitive, names are not", "USER-AGENT: *\nDISALLOW: /P", []string{"/p"}, []string{"/P"}},
		{"comments and spaces", "  User-agent : *  # all\n\tDisallow:\t/p  # hidden\n#Disallow: /q", []string{"/q"}, []string{"/p"}},
		{"a forgotten colon", "User-agent *\nDisallow /p", []string{"/"}, []string{"/p"}},
		{"a misspelt Disallow", "User-agent: *\nDissallow: /p\nDisalow: /q", []string{"/"}, []string{"/p", "/q"}},
		{"lines that make no sense", "User-agent: *\nfoo\nfoo: bar\n: x\nDisallow: /p\n::", []string{"/"}, []string{"/p"}},
		{"robots.txt itself is allowed", "User-agent: *\nDisallow: /", []string{"/robots.txt"}, []string{"/robots.txt2", "/x/robots.txt"}},
		{"a query is part of the path", "User-agent: *\nDisallow: /*?sid=", []string{"/a", "/a?b"}, []string{"/a?sid=1"}},
		{"a fragment is not", "User-agent: *\nDisallow: /*x", []string{"/a#x"}, nil},
		{"an empty path is the root", "User-agent: *\nDisallow: /$", nil, []string{""}},
	}
	for _, tc := range cases {
		rules := robots.Parse([]byte(tc.file))
		for _, p := range tc.yes {
			if !rules.Allowed(bot, p) {
				t.Errorf("%s: %s is denied", tc.name, p)
			}
		}
		for _, p := range tc.no {
			if rules.Allowed(bot, p) {
				t.Errorf("%s: %s is allowed", tc.name, p)
			}
		}
	}
}

func TestTheProductTokenNamesUs(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{
		"holdfast/1.0 (+https://example.org)": "holdfast", "My-Bot_x": "my-bot_x", "bot2": "bot", "": "", "123": "",
		"Mozilla/5.0 (compatible; x)": "mozilla",
	} {
		if got := robots.ProductToken(agent); got != want {
			t.Errorf("%q: %q, want %q", agent, got, want)
		}
	}
}

func TestCrawlDelays(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, file string
		want       time.Duration
		ok         bool
	}{
		{"none", "User-agent: *\nDisallow: /", 0, false},
		{"whole seconds", "User-agent: *\nCrawl-delay: 10", 10 * time.Second, true},
		{"a fraction", "User-agent: *\nCrawl-delay: 0.5", 500 * time.Millisecond, true},
		{"zero is one too", "User-agent: *\nCrawl-delay: 0", 0, true},
		{"our own", "User-agent: *\nCrawl-delay: 10\n\nUser-agent: holdfast\nCrawl-delay: 2\nDisallow:", 2 * time.Second, true},
		{"none of our own", "User-agent: *\nCrawl-delay: 10\nDisallow: /x\nUser-agent: holdfast\nDisallow:", 0, false},
		{"another's stays another's", "User-agent: bingbot\nCrawl-delay: 10\n\nUser-agent: *\nDisallow: /x", 0, false},
		{"a list of agents above it", "User-agent: a\nUser-agent: holdfast\nCrawl-delay: 4\nDisallow:", 4 * time.Second, true},
		{"the largest of several", "User-agent: *\nCrawl-delay: 1\nDisallow: /a\nUser-agent: *\nCrawl-delay: 7\nCrawl-delay: 3", 7 * time.Second, true},
		{"garbage", "User-agent: *\nCrawl-delay: soon", 0, false},
		{"negative", "User-agent: *\nCrawl-delay: -5", 0, false},
		{"not a number", "User-agent: *\nCrawl-delay: NaN", 0, false},
		{"absurd", "User-agent: *\nCrawl-delay: 1e300", 365 * 24 * time.Hour, true},
		{"before any group", "Crawl-delay: 5\nUser-agent: *\nDisallow:", 0, false},
	}
	for _, tc := range cases {
		if got, ok := robots.Parse([]byte(tc.file)).CrawlDelay("holdfast"); got != tc.want || ok != tc.ok {
			t.Errorf("%s: %v, %v, want %v, %v", tc.name, got, ok, tc.want, tc.ok)
		}
	}
}

func TestOnlyTheFirst500KiBCount(t *testing.T) {
	t.Parallel()
	pad := "User-agent: *\n" + strings.Repeat("#"+strings.Repeat("x", 98)+"\n", robots.MaxBytes/100)
	pad = pad[:strings.LastIndexByte(pad[:robots.MaxBytes-20], '\n')+1]
	within := robots.Parse([]byte(pad + "Disallow: /in\n" + strings.Repeat("#", 100) + "\nDisallow: /out\n"))
	if within.Allowed("holdfast", "/in") || !within.Allowed("holdfast", "/out") {
		t.Error("the cap is not at 500 KiB")
	}
	// A rule that the cap cuts in two says nothing, rather than something wider.
	cut := robots.Parse([]byte(pad + "Disallow: /" + strings.Repeat("y", 200) + "\n"))
	if !cut.Allowed("holdfast", "/y") {
		t.Error("half a rule was obeyed")
	}
}

func TestAHostileFileIsMatchedQuickly(t *testing.T) {
	t.Parallel()
	file := "User-agent: *\nDisallow: /" + strings.Repeat("*a", 2000) + "b$\n"
	rules := robots.Parse([]byte(strings.Repeat(file, 100))).For("holdfast")
	begun := time.Now()
	if !rules.Allowed("/" + strings.Repeat("a", 8000)) {
		t.Error("denied")
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
}
