package kafkalog

import (
	"os"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
)

// TestPageHasTheSettings: the command in docs/kafka.md makes the topic that Open makes.
func TestPageHasTheSettings(t *testing.T) {
	page, err := os.ReadFile("../../docs/kafka.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range safely(broker.UsualReplicas) {
		if !strings.Contains(string(page), "--config "+name+"="+value) {
			t.Errorf("docs/kafka.md does not have --config %s=%s", name, value)
		}
	}
}
