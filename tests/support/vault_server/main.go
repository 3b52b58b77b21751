// Command vault_server is HashiCorp Vault for tests: its own core, HTTP interface, engine KV and AppRole, kept in memory.
// It is built without the many other engines of the program `vault`, so that it takes minutes instead of a quarter of an hour.
package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"

	log "github.com/hashicorp/go-hclog"
	kv "github.com/hashicorp/vault-plugin-secrets-kv"
	"github.com/hashicorp/vault/builtin/credential/approle"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/hashicorp/vault/vault"
)

type engine struct {
	kind    consts.PluginType
	factory logical.Factory
}

// engines are those that this server has, by their names.
type engines map[string]engine

func (e engines) Contains(name string, kind consts.PluginType) bool {
	found, ok := e[name]
	return ok && found.kind == kind
}

func (e engines) Get(name string, kind consts.PluginType) (func() (interface{}, error), bool) {
	return func() (interface{}, error) { return e[name].factory, nil }, e.Contains(name, kind)
}

func (e engines) Keys(kind consts.PluginType) []string {
	var names []string
	for name, found := range e {
		if found.kind == kind {
			names = append(names, name)
		}
	}
	return names
}

func (e engines) DeprecationStatus(name string, kind consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, e.Contains(name, kind)
}

// serve starts a new Vault at an address, and prints its only unseal key and its root token.
func serve(address string) error {
	logger := log.New(&log.LoggerOptions{Level: log.Error})
	storage, err := inmem.NewInmem(nil, logger)
	if err != nil {
		return err
	}
	core, err := vault.NewCore(&vault.CoreConfig{
		Physical:           storage,
		Logger:             logger,
		DisableMlock:       true,
		LogicalBackends:    map[string]logical.Factory{"kv": kv.Factory},
		CredentialBackends: map[string]logical.Factory{"approle": approle.Factory},
		BuiltinRegistry:    engines{"kv": {consts.PluginTypeSecrets, kv.Factory}, "approle": {consts.PluginTypeCredential, approle.Factory}},
	})
	if err != nil {
		return err
	}
	oneKey := vault.InitParams{
		BarrierConfig:  &vault.SealConfig{SecretShares: 1, SecretThreshold: 1},
		RecoveryConfig: &vault.SealConfig{},
	}
	result, err := core.Initialize(context.Background(), &oneKey)
	if err != nil {
		return err
	}
	if _, err := core.Unseal(result.SecretShares[0]); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println(hex.EncodeToString(result.SecretShares[0]), result.RootToken)
	properties := vault.HandlerProperties{Core: core, ListenerConfig: &configutil.Listener{}}
	return http.Serve(listener, vaulthttp.Handler.Handler(&properties))
}

func main() {
	fmt.Fprintln(os.Stderr, serve(os.Args[1]))
	os.Exit(1)
}
