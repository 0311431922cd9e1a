package prove

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/quotabench/quotabench/harness"
	"github.com/quotabench/quotabench/internal/kit/bounds"
	"github.com/quotabench/quotabench/internal/trouble"
	"github.com/quotabench/quotabench/oracle"
	"github.com/quotabench/quotabench/quota"
	"github.com/quotabench/quotabench/strategies"
)

const (
	// outageRequests are about as many as a scene with an outage has.
	outageRequests = 5_000
	// settled is how long after an outage a limiter may still be busy with it, and windows at least so many.
	settled        = 5 * time.Minute
	settledWindows = 2
)

// outage is the scene in which Redis cannot be reached for a while: a limiter decides again once it is back. There is
// none for a limiter that has no Redis or several.
func (s *simulation) outage() []*scene {
	if len(s.sel.RedisNeeds()) != 1 || s.policy.Window.Kind == quota.Standing {
		return nil
	}
	seconds := min(outageRequests/s.perWindow()*s.length.Seconds(), bounds.MaxVirtualDuration.Seconds())
	enough := time.Duration(seconds) * time.Second
	config := s.steadily(max(enough, mostWindows*s.length, 4*settled))
	mostPerSecond := mostRequests / config.Duration.Seconds() // of a short window only a part of the requests
	config.Load = harness.OpenAt(min(s.perWindow()/s.length.Seconds(), mostPerSecond))
	config.Trouble = trouble.List{{
		Where: trouble.Where{Name: string(strategies.NeedRedis), Instance: trouble.All},
		What:  trouble.What{Word: trouble.Away},
		When:  trouble.When{From: 0.3, To: 0.4},
	}}
	says := "what follows an outage of Redis" + s.lowered()
	return []*scene{{says: says, subjects: simulatedSubjects, config: config, judge: s.judgeRecovery, short: true}}
}

// judgeRecovery looks at the requests long after the outage: none gets an error, and some are admitted.
func (s *simulation) judgeRecovery(p *played) (wrong, told string, err error) {
	file, err := oracle.OpenHistory(filepath.Join(p.config.Archive, p.run.HistoryName()))
	if err != nil {
		return "", "", err
	}
	defer func() { _ = file.Close() }() // it was only read
	_, ends := p.config.Trouble[0].When.Within(p.config.Duration)
	from := ends + max(settled, settledWindows*s.length)
	var asked, failed, admitted int64
	for events, err := range file.Subjects() {
		if err != nil {
			return "", "", err
		}
		for i := range events {
			event := &events[i]
			if event.Kind != oracle.Take || event.Call < int64(from) {
				continue
			}
			asked++
			switch event.Outcome {
			case oracle.Failed:
				failed++
			case oracle.Admitted:
				admitted++
			}
		}
	}
	switch after := quota.LengthText(from - ends); {
	case failed > 0:
		wrong = fmt.Sprintf("STUCK: %d of %d requests got an error %s and more after Redis was back\n", failed, asked, after)
	case asked > 0 && admitted == 0:
		wrong = fmt.Sprintf("STUCK: none of %d requests was admitted %s and more after Redis was back\n", asked, after)
	}
	return wrong, "", nil
}
