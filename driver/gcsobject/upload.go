package gcsobject

import (
	"bytes"
	"encoding/json"
	"mime/multipart"
	"net/textproto"
)

// multipartOf returns the body of an upload of metadata and content in one request. Its boundary is
// random, so no value can contain it.
func multipartOf(name string, value []byte) (body []byte, contentType string, err error) {
	metadata, err := json.Marshal(map[string]string{"name": name, "contentType": "application/json", "cacheControl": "no-store"})
	if err != nil {
		return nil, "", err
	}
	var text bytes.Buffer
	parts := multipart.NewWriter(&text)
	for _, content := range [][]byte{metadata, value} {
		w, err := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {"application/json; charset=utf-8"}})
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			return nil, "", err
		}
	}
	err = parts.Close()
	return text.Bytes(), "multipart/related; boundary=" + parts.Boundary(), err
}
