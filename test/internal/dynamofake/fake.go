// Package dynamofake is a server within the process that speaks the JSON protocol of DynamoDB, as
// far as elections and their operators use it. It checks signatures, clocks and rights, which
// emulators do not.
package dynamofake

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Region is the region of all tables.
const Region = "eu-test-1"

// item is an item by attributes, as the protocol has it: a type and its value.
type item map[string]map[string]any

// table is one table.
type table struct {
	id     string
	items  map[string]item // by partition key
	change map[string]any  // of its description
}

// Server is the handler. It must be made by New. Its methods may be called from many goroutines.
type Server struct {
	mu     sync.Mutex
	tables map[string]*table
	users  map[string]*user
	counts map[string]int // requests by operation

	// Intercept may answer a request itself, and returns true then. Set it while no request is
	// under way.
	Intercept func(w http.ResponseWriter, operation string, carryOut func()) bool
	// Ignores reports whether the server takes a condition for met: "attribute_not_exists(#k)" or
	// "#v = :prev"; nil: it evaluates all. Set it while there is no request.
	Ignores func(condition string) bool
}

// New returns a server with these tables, and the user Access with all rights.
func New(tables ...string) *Server {
	s := &Server{tables: map[string]*table{}, users: map[string]*user{}, counts: map[string]int{}}
	for _, name := range tables {
		s.Make(name)
	}
	s.Allow(Access, Secret, All...)
	return s
}

// Make makes an empty table, in place of one with this name.
func (s *Server) Make(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tables[name] = &table{id: rand.Text(), items: map[string]item{}}
}

// Drop deletes a table.
func (s *Server) Drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tables, name)
}

// Backup returns a function that restores the present items into a new table of this name.
func (s *Server) Backup(name string) (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	saved := maps.Clone(s.tables[name].items)
	return func() {
		s.Make(name)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tables[name].items = maps.Clone(saved)
	}
}

// Describe changes members of a table's description.
func (s *Server) Describe(name string, change map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tables[name].change = change
}

// Edit changes an item by hand, and deletes it if nothing is left.
func (s *Server) Edit(name, key string, edit func(map[string]map[string]any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := maps.Clone(s.tables[name].items[key])
	if changed == nil {
		changed = item{}
	}
	edit(changed)
	if len(changed) == 0 {
		delete(s.tables[name].items, key)
		return
	}
	s.tables[name].items[key] = changed
}

// Requests counts the requests of an operation.
func (s *Server) Requests(operation string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[operation]
}

// request has the members that the operations use.
type request struct {
	TableName                 string
	Key, Item                 item
	ConditionExpression       string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues map[string]map[string]any
	KeySchema                 []any
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	operation := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB_20120810.")
	s.mu.Lock()
	s.counts[operation]++
	s.mu.Unlock()
	answer := func() (int, any) { return s.answer(r, operation, body) }
	if s.Intercept != nil && s.Intercept(w, operation, func() { answer() }) {
		return
	}
	status, out := answer()
	reply(w, status, out)
}

func reply(w http.ResponseWriter, status int, out any) {
	text, _ := json.Marshal(out)
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(text)), 10))
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// Refuse answers with an error of the service.
func Refuse(w http.ResponseWriter, status int, code, message string) {
	reply(w, status, refusal(code, message))
}

func refusal(code, message string) map[string]string {
	return map[string]string{"__type": "com.amazonaws.dynamodb.v20120810#" + code, "message": message}
}

func (s *Server) answer(r *http.Request, operation string, body []byte) (int, any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var in request
	if err := json.Unmarshal(body, &in); err != nil {
		return http.StatusBadRequest, refusal("SerializationException", err.Error())
	}
	if code, message := s.refuses(r, operation, body, in); code != "" {
		return http.StatusBadRequest, refusal(code, message)
	}
	t := s.tables[in.TableName]
	if operation == "CreateTable" {
		if t != nil {
			return http.StatusBadRequest, refusal("ResourceInUseException", "Table already exists: "+in.TableName)
		}
		t = &table{id: rand.Text(), items: map[string]item{}}
		s.tables[in.TableName] = t
		return http.StatusOK, map[string]any{"TableDescription": t.describe(in.TableName)}
	}
	if t == nil {
		return http.StatusBadRequest, refusal("ResourceNotFoundException", "Requested resource not found: Table: "+in.TableName+" not found")
	}
	switch operation {
	case "DescribeTable":
		return http.StatusOK, map[string]any{"Table": t.describe(in.TableName)}
	case "GetItem":
		if found := t.items[keyOf(in.Key)]; found != nil {
			return http.StatusOK, map[string]any{"Item": found}
		}
		return http.StatusOK, map[string]any{}
	case "PutItem":
		ignored := s.Ignores != nil && s.Ignores(in.ConditionExpression)
		if !ignored && !in.meets(t.items[keyOf(in.Item)]) {
			return http.StatusBadRequest, refusal("ConditionalCheckFailedException", "The conditional request failed")
		}
		t.items[keyOf(in.Item)] = in.Item
		return http.StatusOK, map[string]any{}
	case "DeleteItem":
		delete(t.items, keyOf(in.Key))
		return http.StatusOK, map[string]any{}
	case "Scan":
		all := slices.Collect(maps.Values(t.items))
		return http.StatusOK, map[string]any{"Items": all, "Count": len(all), "ScannedCount": len(all)}
	}
	return http.StatusBadRequest, refusal("UnknownOperationException", operation)
}

const partitionKey = "election"

func keyOf(of item) string { return fmt.Sprint(of[partitionKey]["S"]) }

func (t *table) describe(name string) map[string]any {
	d := map[string]any{
		"TableName": name, "TableId": t.id, "TableStatus": "ACTIVE",
		"KeySchema":            []any{map[string]string{"AttributeName": partitionKey, "KeyType": "HASH"}},
		"AttributeDefinitions": []any{map[string]string{"AttributeName": partitionKey, "AttributeType": "S"}},
		"BillingModeSummary":   map[string]string{"BillingMode": "PAY_PER_REQUEST"},
	}
	maps.Copy(d, t.change)
	return d
}

// meets evaluates a condition of terms that AND joins: NAME = VALUE, or attribute_not_exists(NAME).
func (in request) meets(present item) bool {
	if in.ConditionExpression == "" {
		return true
	}
	for term := range strings.SplitSeq(in.ConditionExpression, " AND ") {
		left, right, equals := strings.Cut(term, " = ")
		name, absent := strings.CutPrefix(left, "attribute_not_exists(")
		attribute, there := present[in.ExpressionAttributeNames[strings.TrimSuffix(name, ")")]]
		switch {
		case absent && there:
			return false
		case equals && (!there || !maps.Equal(attribute, in.ExpressionAttributeValues[right])):
			return false
		case !absent && !equals:
			panic("dynamofake knows no condition " + term)
		}
	}
	return true
}
