package reserve

import (
	"fmt"
	"math/rand/v2"

	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

var urlOption = quota.Option{
	Name: "url-fail-share", Type: "float", Default: "0", Min: "0", Max: "1",
	Doc: "`share` of admitted requests, 0 to 1, that are refunded with an error because making the upload's URL fails",
}

// urls is the step of ADR-RM-3 between reserving and answering: the application
// makes the URL that its client uploads to. It asks no store. What is modelled is
// that it fails for a share of the requests.
type urls struct {
	start uint64 // of the random stream, of which each request has its own number
	share float64
}

func newURLs(env strategies.Env) urls {
	u := urls{share: env.Options.Float("url-fail-share")}
	if u.share > 0 {
		u.start = env.Rand.Uint64()
	}
	return u
}

// make answers an error where making the URL fails. Which requests those are
// follows from their IDs, whatever the order in which they come.
func (u urls) make(req quota.Request) error {
	if u.share == 0 || rand.New(rand.NewPCG(u.start, req.ID)).Float64() >= u.share {
		return nil
	}
	return fmt.Errorf("making the upload's URL failed: %w", strategies.ErrPrescribed)
}
