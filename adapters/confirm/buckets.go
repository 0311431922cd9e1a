package confirm

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	beego "github.com/beego/beego/v2/server/web/context"
	beegolimit "github.com/beego/beego/v2/server/web/filter/ratelimit"
	jaeger "github.com/uber/jaeger-client-go/utils"
	oxy "github.com/vulcand/oxy/v2/ratelimit"
	"github.com/vulcand/oxy/v2/utils"
)

// burst asks until it is rejected, and returns how often it was admitted, and in what time.
func burst(most int, admit func() bool) (admitted int, took time.Duration) {
	began := time.Now() //nolint:forbidigo // nothing of quotabench is here, and the library reads the same clock
	for admitted < most && admit() {
		admitted++
	}
	return admitted, time.Since(began) //nolint:forbidigo // as above
}

// idle has a bucket of size and each, the time for one unit: one unit is taken, three
// times as long is waited as it takes to fill the bucket, and what is there is taken.
func idle(size int, each time.Duration, admit func() bool) (string, bool, error) {
	if !admit() {
		return "the first request was rejected", false, nil
	}
	time.Sleep(3 * time.Duration(size) * each)
	admitted, took := burst(10*size, admit)
	return fmt.Sprintf("with a burst of %d and a unit per %v it admitted %d requests within %v after a rest", size, each,
			admitted, took.Round(time.Millisecond)),
		admitted > size && took < each, nil
}

// The bucket is cut down to its size after a unit was taken from it, and not before.
var beegoBurst = Confirmation{Name: "beego-burst", Run: func(Env) (string, bool, error) {
	const each = 300 * time.Millisecond
	filter := beegolimit.NewLimiter(beegolimit.WithCapacity(1), beegolimit.WithRate(each))
	return idle(1, each, func() bool {
		recorder := httptest.NewRecorder()
		context := beego.NewContext()
		context.Reset(recorder, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		filter(context)
		return recorder.Code != http.StatusTooManyRequests
	})
}}

// The balance is updated only if it does not suffice: what flows in later is added to
// what was left, and the time since then counts once more.
var jaegerBurst = Confirmation{Name: "jaeger-burst", Run: func(Env) (string, bool, error) {
	limiter := jaeger.NewRateLimiter(4, 2)
	return idle(2, 250*time.Millisecond, func() bool { return limiter.CheckCredit(1) })
}}

func oxyLimiter(average, size int64) (admit func() bool, err error) {
	rates := oxy.NewRateSet()
	if err := rates.Add(time.Second, average, size); err != nil {
		return nil, err
	}
	source, err := utils.NewExtractor("client.ip")
	if err != nil {
		return nil, err
	}
	limiter, err := oxy.New(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), source, rates)
	return func() bool {
		recorder := httptest.NewRecorder()
		limiter.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		return recorder.Code == http.StatusOK
	}, err
}

// Ten units flow in each second. A caller who comes every 150 ms and takes what is there
// must get three units of two visits.
var oxyFraction = Confirmation{Name: "oxy-fraction", Run: func(Env) (string, bool, error) {
	admit, err := oxyLimiter(10, 4)
	if err != nil {
		return "", false, err
	}
	burst(100, admit)
	began := time.Now() //nolint:forbidigo // as above
	admitted := 0
	for range 20 {
		time.Sleep(150 * time.Millisecond)
		n, _ := burst(100, admit)
		admitted += n
	}
	flowed := int(time.Since(began) / (100 * time.Millisecond)) //nolint:forbidigo // as above
	return fmt.Sprintf("at 10 per second and a burst of 4, %d requests were admitted while %d units flowed in, to a "+
			"caller who took all there was every 150 ms", admitted, flowed),
		admitted < flowed*9/10, nil
}}

// The bucket of a source is forgotten ten times its period and a second after it was made.
var oxyForgets = Confirmation{Name: "oxy-forgets", Run: func(Env) (string, bool, error) {
	admit, err := oxyLimiter(1, 100)
	if err != nil {
		return "", false, err
	}
	began := time.Now() //nolint:forbidigo // as above
	first, _ := burst(1000, admit)
	time.Sleep(12 * time.Second)
	second, _ := burst(1000, admit)
	took := time.Since(began) //nolint:forbidigo // as above
	return fmt.Sprintf("at 1 per second and a burst of 100 it admitted %d requests in %v", first+second,
		took.Round(time.Second)), first+second > 100+int(took/time.Second)+1, nil
}}
