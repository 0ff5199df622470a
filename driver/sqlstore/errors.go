package sqlstore

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"github.com/tenure-go/tenure/driver"
)

// ErrNoTable reports that the table or its schema does not exist.
var ErrNoTable = errors.New("there is no such table")

// meaning is what an error of the database means for a call.
type meaning int

const (
	unknown       meaning = iota // the outcome is not known
	conflict                     // the statement was undone, or the row is there already
	denied                       // a right is missing
	refused                      // the server lets this user in not at all
	noTLS                        // the server offers no TLS
	noDatabase                   // there is no such database
	noTable                      // there is no such table
	otherLayout                  // the table has other columns
	readOnly                     // the server takes no writes
	noEra                        // the expression of the era cannot be evaluated
	inTransaction                // a transaction is open on the connection
)

// explain turns an error of the database into one of the contract, with the remedy for an operator.
func (s *Store) explain(err error) error {
	var sent *unconfirmedError
	if errors.As(err, &sent) {
		return err // no code of the database makes its outcome certain
	}
	m := s.dialect.means(s.code(err), err.Error())
	remedy := s.dialect.remedies[m]
	switch m {
	case unknown:
		return err
	case inTransaction:
		remedy = "a transaction is open on this connection, so nothing was written; " + s.dialect.unfit
	case conflict:
		return fmt.Errorf("%w: %w", driver.ErrConflict, err)
	case denied, refused:
		return fmt.Errorf("%w: %s: %w", driver.ErrDenied, remedy, err)
	case noTable:
		return fmt.Errorf("%w in this database%s; make it with tenure run --create, Store.Create, or this "+
			"statement:\n%s;\n%w", ErrNoTable, remedy, s.text.create, err)
	case otherLayout:
		return fmt.Errorf("the table has other columns than elections need; name another one, or recreate it "+
			"with this statement:\n%s;\n%w", s.text.create, err)
	case noEra:
		remedy = "this database lacks the functions by which " + s.dialect.name + " identifies a restored or recreated database; set an expression for that with " +
			"sqlstore.WithEra"
	}
	return fmt.Errorf("%s: %w", remedy, err)
}

// code returns the database's code of an error of the drivers that WithCode names.
func code(err error) string {
	var state interface{ SQLState() string } // pgx, lib/pq
	if errors.As(err, &state) {
		return state.SQLState()
	}
	var result interface{ Code() int } // modernc.org/sqlite
	if errors.As(err, &result) {
		return strconv.Itoa(result.Code() & 0xff)
	}
	return codeInField(err)
}

// codeInField finds the codes that go-sql-driver/mysql and mattn/go-sqlite3 have in a field.
func codeInField(err error) string {
	for ; err != nil; err = errors.Unwrap(err) {
		v := reflect.Indirect(reflect.ValueOf(err))
		if v.Kind() != reflect.Struct {
			continue
		}
		if f := v.FieldByName("Number"); f.IsValid() && f.CanUint() {
			return strconv.FormatUint(f.Uint(), 10)
		}
		if f := v.FieldByName("Code"); f.IsValid() && f.CanInt() {
			return strconv.FormatInt(f.Int()&0xff, 10)
		}
	}
	return ""
}

// unconfirmedError reports that the database acknowledged a write, and that it is not certain that
// the write is committed as it was sent.
type unconfirmedError struct{ cause error }

func (e *unconfirmedError) Error() string { return "the write is not confirmed: " + e.cause.Error() }

func (e *unconfirmedError) Unwrap() error { return e.cause }
