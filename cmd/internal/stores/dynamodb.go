//go:build !no_dynamodb

package stores

import "github.com/tenure-go/tenure/cmd/internal/stores/dynamoplace"

func init() { kinds = append(kinds, dynamoplace.Kind()) }
