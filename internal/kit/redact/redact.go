// Package redact takes passwords out of texts that are shown.
package redact

import (
	"regexp"
	"strings"
)

// Where a URL can hold a password: in the user's part, however many of its special
// characters were forgotten to be escaped, and in a parameter, which for services may be a
// key or a token, too.
// In the last form the scheme was forgotten.
var (
	userPassword  = regexp.MustCompile(`(://[^/@:?#\s]*):.*@`)
	paramPassword = regexp.MustCompile(`(?i)([?&][a-z_-]*(?:password|token|secret|key)=)[^&#\s"']*`)
	pairPassword  = regexp.MustCompile(`(?i)(^|[\s"'])(password=)[^\s"']+`)
	barePassword  = regexp.MustCompile(`(^|[\s"'=(,])([^\s"'=(,:/@]*):[^/\s]\S*@(\S*)`)
	// What follows the last @ of an event of package trouble is a fraction or an interval, which no host is.
	share = regexp.MustCompile(`^(?:[01]?\.\d+(?:-[01])?|[01]-[01]?\.\d+|[01]?\.\d+-[01]?\.\d+)(?:[.:]?$|[^\w.:@-])`)
	// A pause or a restart of all instances can be at 0, too.
	beginning   = regexp.MustCompile(`^[\s"'=(,]?instances:\S*@0(?:[.:]?$|[^\w.:@-])`)
	hiddenParam = regexp.MustCompile(`(?i)[?&][a-z_-]*(?:password|token|secret|key)=\*\*\*&?`)
)

// Hidden stands for a password that is not shown.
const Hidden = "***"

// exampleLogin is how messages show what a URL looks like.
const exampleLogin = "://user:password@host:port"

// URLs takes passwords of URLs out of a text.
func URLs(text string) string {
	parts := strings.Split(text, exampleLogin) // of our own messages
	for i, p := range parts {
		p = userPassword.ReplaceAllString(p, "${1}:"+Hidden+"@")
		parts[i] = paramPassword.ReplaceAllStringFunc(p, func(param string) string {
			name, value, _ := strings.Cut(param, "=")
			if value == "{subject}" { // of a service, whose key is the subject
				return param
			}
			return name + "=" + Hidden
		})
	}
	return strings.Join(parts, exampleLogin)
}

// All takes everything that may be a password out of a text. It is for messages, and not for
// what is read again.
func All(text string) string {
	text = pairPassword.ReplaceAllString(URLs(text), "${1}${2}"+Hidden)
	return barePassword.ReplaceAllStringFunc(text, func(login string) string {
		part := barePassword.FindStringSubmatch(login)
		if share.MatchString(part[3]) || beginning.MatchString(login) {
			return login
		}
		return part[1] + part[2] + ":" + Hidden + "@" + part[3]
	})
}

// Restore takes what stands for a password out of a URL, so that the one from the
// environment counts.
func Restore(url string) string {
	url = strings.Replace(url, ":"+Hidden+"@", "@", 1)
	return hiddenParam.ReplaceAllStringFunc(url, func(text string) string {
		if text[len(text)-1] == '&' {
			return text[:1]
		}
		return ""
	})
}
