//go:build !no_azure

package stores

import "github.com/tenure-go/tenure/cmd/internal/stores/azurecontainer"

func init() { kinds = append(kinds, azurecontainer.Kind()) }
