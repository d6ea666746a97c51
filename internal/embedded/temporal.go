package embedded

import (
	"fmt"
	"time"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
)

const (
	clusterName = "active"
	// shards is fixed when the database is made. They would share its one
	// connection: four cost more CPU a workflow than one and bring nothing.
	shards = 1
)

// dynamic is what differs from the server's defaults, which are made for a
// cluster of many tenants.
func dynamic() dynamicconfig.StaticClient {
	const plenty = 1_000_000
	return dynamicconfig.StaticClient{
		// One tenant, one machine: what limits is the machine.
		dynamicconfig.FrontendRPS.Key():                                         plenty,
		dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key():                  plenty,
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key():        1000,
		dynamicconfig.FrontendMaxConcurrentLongRunningRequestsPerInstance.Key(): 10_000,
		dynamicconfig.FrontendPersistenceMaxQPS.Key():                           plenty,
		dynamicconfig.HistoryRPS.Key():                                          plenty,
		dynamicconfig.HistoryPersistenceMaxQPS.Key():                            plenty,
		dynamicconfig.MatchingRPS.Key():                                         plenty,
		dynamicconfig.MatchingPersistenceMaxQPS.Key():                           plenty,
		// One process matches all: partitions would only forward to one another.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,
		// 128,000 histories would be gigabytes.
		dynamicconfig.HistoryCacheHostLevelMaxSize.Key(): 8192,
		dynamicconfig.EnableEagerWorkflowStart.Key():     true,
		dynamicconfig.EnableActivityEagerExecution.Key(): true,
		// Asks no one on the internet.
		dynamicconfig.EnableServerVersionCheck.Key(): false,
		// System workflows that look for what a crashed cluster left; there are no
		// child workflows either.
		dynamicconfig.TaskQueueScannerEnabled.Key():       false,
		dynamicconfig.HistoryScannerEnabled.Key():         false,
		dynamicconfig.ExecutionsScannerEnabled.Key():      false,
		dynamicconfig.EnableParentClosePolicyWorker.Key(): false,
	}
}

func serverConfig(history, visibility *config.SQL, p Ports) *config.Config {
	service := func(port int) config.Service {
		return config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: "127.0.0.1"}}
	}
	var c config.Config
	c.Global.Membership.MaxJoinDuration = 30 * time.Second
	c.Global.Membership.BroadcastAddress = "127.0.0.1"
	c.Persistence = config.Persistence{
		DefaultStore: "history", VisibilityStore: "visibility", NumHistoryShards: shards,
		DataStores: map[string]config.DataStore{"history": {SQL: history}, "visibility": {SQL: visibility}},
	}
	c.ClusterMetadata = &cluster.Config{
		FailoverVersionIncrement: 10,
		MasterClusterName:        clusterName,
		CurrentClusterName:       clusterName,
		ClusterInformation: map[string]cluster.ClusterInformation{
			clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: loopback(p.Temporal)},
		},
	}
	c.DCRedirectionPolicy.Policy = "noop"
	c.Services = map[string]config.Service{
		"frontend": service(p.Temporal), "history": service(p.History),
		"matching": service(p.Matching), "worker": service(p.Worker),
	}
	c.Archival.History.State, c.Archival.Visibility.State = "disabled", "disabled"
	c.NamespaceDefaults.Archival.History.State, c.NamespaceDefaults.Archival.Visibility.State = "disabled", "disabled"
	c.PublicClient.HostPort = loopback(p.Temporal)
	return &c
}

func newTemporal(c *config.Config, p Ports, logger log.Logger) (temporal.Server, error) {
	authorizer, err := authorization.GetAuthorizerFromConfig(&c.Global.Authorization)
	if err != nil {
		return nil, fmt.Errorf("make temporal: %w", err)
	}
	claims, err := authorization.GetClaimMapperFromConfig(&c.Global.Authorization, logger)
	if err != nil {
		return nil, fmt.Errorf("make temporal: %w", err)
	}
	// Static membership: nothing gossips, nothing waits for a dead one's lease.
	hosts := map[primitives.ServiceName]static.Hosts{
		primitives.FrontendService: static.SingleLocalHost(loopback(p.Temporal)),
		primitives.HistoryService:  static.SingleLocalHost(loopback(p.History)),
		primitives.MatchingService: static.SingleLocalHost(loopback(p.Matching)),
		primitives.WorkerService:   static.SingleLocalHost(loopback(p.Worker)),
	}
	server, err := temporal.NewServer(
		temporal.WithConfig(c),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(hosts),
		temporal.WithLogger(logger),
		temporal.WithAuthorizer(authorizer),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return claims }),
		temporal.WithDynamicConfigClient(dynamic()),
	)
	if err != nil {
		return nil, fmt.Errorf("make temporal: %w", err)
	}
	return server, nil
}
