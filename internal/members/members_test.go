package members_test

import (
	"slices"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/members"
)

func TestCheck(t *testing.T) {
	for text, ok := range map[string]bool{
		"http://node-1:9464/member": true, "https://node-1": true, "dns+http://workers.prod.svc:9464/member": true, "dns+https://workers": true,
		"dns+ftp://workers": false, "node-1:9464": false, "dns+node-1:9464": false, "srv+http://node-1": false, "http://": false, "": false, "http://:80": false,
	} {
		if err := members.Check(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A name stands for all of its addresses; the name itself decides which host the requests are for.
func TestResolve(t *testing.T) {
	for text, want := range map[string][]members.Address{
		"http://node-1:9464/member?a=b":        {{URL: "http://node-1:9464/member?a=b"}},
		"dns+http://127.0.0.1:9464/member?a=b": {{URL: "http://127.0.0.1:9464/member?a=b", Host: "127.0.0.1:9464"}},
		"dns+https://127.0.0.1":                {{URL: "https://127.0.0.1", Host: "127.0.0.1"}},
		"dns+http://[::1]:80/":                 {{URL: "http://[::1]:80/", Host: "[::1]:80"}},
		"dns+http://[::1]/":                    {{URL: "http://[::1]/", Host: "[::1]"}},
	} {
		if got, err := members.Resolve(t.Context(), text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
}

// Anyone may answer anything.
func TestAnswersAreChecked(t *testing.T) {
	long := make([]byte, 300)
	for i := range long {
		long[i] = 'x'
	}
	got := members.Answers([][]byte{
		[]byte(`{"election":"billing","id":"a","state":"candidate"}`), []byte(`{"election":"other","id":"b"}`), []byte(`null`), []byte("\x00"), []byte(`[]`),
		[]byte(`{"election":"billing","id":"` + string(long) + `"}`), []byte(`{"election":"billing","address":"` + string(long) + `"}`),
	}, func(e string) bool { return e == "billing" })
	if len(got) != 1 || got[0].ID != "a" || got[0].State != string(tenure.StateCandidate) {
		t.Errorf("got %+v", got)
	}
}
