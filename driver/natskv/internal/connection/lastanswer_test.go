package connection

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestLastAnswer: while other such requests are answered, a request may wait: thousands of
// elections wait for each other.
func TestLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lastAnswer
		sent := time.Now().Add(-time.Minute)
		if d := l.silence(sent); d != time.Minute {
			t.Errorf("without any answer there was silence for %v", d)
		}
		l.note()
		time.Sleep(time.Second)
		if d := l.silence(sent); d != time.Second {
			t.Errorf("a second after an answer there was silence for %v", d)
		}
		if d := l.silence(time.Now()); d != 0 {
			t.Errorf("from now on there was silence for %v", d)
		}
	})
}
