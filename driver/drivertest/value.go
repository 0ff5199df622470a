package drivertest

import (
	"bytes"

	"github.com/tenure-go/tenure/driver"
)

func valueCases() []testCase {
	return []testCase{
		{"values are kept byte for byte",
			"a changed record is foreign, so no candidate can lead any more", valuesExact},
		{"values are copied in and out",
			"otherwise a caller that reuses a buffer would change the record", valuesCopied},
	}
}

func valuesExact(t *trial) {
	key := t.key("values")
	v := t.read(key).Version
	for _, value := range values() {
		v = t.requireSwap(key, v, value)
		t.requireValue(key, v, value)
	}
}

func values() [][]byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return [][]byte{
		[]byte("x"),
		{0},
		[]byte(" "),
		[]byte("\n"),
		[]byte("null"),
		[]byte("{}"),
		[]byte(" leading and trailing \r\n"),
		[]byte(`{"b":1,"a":"Zürich ☕ 𝄞 \u00e9","b":2,"html":"<&>"}` + "\n"),
		[]byte("not UTF-8: \xff\xfe\xc3"),
		all,
		bytes.Repeat(all, driver.MaxValue/len(all))[1:],
		bytes.Repeat(all, driver.MaxValue/len(all)),
		bytes.Repeat([]byte{0xff}, driver.MaxValue),
		bytes.Repeat([]byte{0}, driver.MaxValue),
	}
}

func valuesCopied(t *trial) {
	key, want := t.key("values"), []byte("mine")
	buffer := bytes.Clone(want)
	v := t.create(key, buffer)
	copy(buffer, "XXXX")
	e := t.requireValue(key, v, want)
	copy(e.Value, "YYYY")
	t.requireValue(key, v, want)
}
